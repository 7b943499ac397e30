"""The rules of one gridworld, exactly MiniGrid's.

Keys survive unlocking, doors can be closed again, a toggled box is replaced by its contents, and
the agent carries at most one object. Success is MiniGrid's `terminated` except in lava. If the
episode continues after a success, as in pre-training, success can recur: by another `pickup` with
the target carried, or another step onto the goal.

In a level with a noisy ball (MultiRoomNoisyTV; paper, appendix "noisy environment"), DROP drops
nothing and recolours that ball instead. The ball can be picked up, as in the published code.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8, UInt32

from envs.hashing import mix
from envs.minigrid import cells as c
from envs.minigrid.level import (
    DIRECTIONS,
    MARGIN,
    OPEN_DOOR,
    PICK_UP,
    REACH_GOAL,
    Level,
    pack_position,
    unpack_position,
)
from envs.names import ACTIONS as ACTIONS

LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE, DONE = range(7)


class State(NamedTuple):
    """One gridworld at one time step."""

    level: Level  # grid and agent as they are now; task and time limit as at the start
    carrying: UInt8[Array, ""]  # the carried cell, EMPTY if none
    step_count: Int[Array, ""]  # steps taken in this episode
    succeeded: Bool[Array, ""]  # whether the task was fulfilled earlier in this episode
    changes: UInt32[Array, "2"]  # hash of the changes to grid and carried object since the start


class Outcome(NamedTuple):
    """The result of one action."""

    reward: Float[Array, ""]  # 1 - 0.9 t / T at the first success of the episode, else 0
    success: Bool[Array, ""]  # the action fulfilled the task
    died: Bool[Array, ""]  # the agent stepped into lava
    timed_out: Bool[Array, ""]  # the time limit is reached
    interaction: UInt32[Array, "2"]  # hash of the full states (before, after); zeros if none


def start(level: Level) -> State:
    """Return the first state of an episode in `level`."""
    return State(
        level=level,
        carrying=jnp.full_like(level.task, c.EMPTY, jnp.uint8),
        step_count=jnp.zeros_like(level.task),
        succeeded=jnp.zeros_like(level.task, bool),
        changes=jnp.zeros((2,), jnp.uint32),
    )


def no_outcome(state: State) -> Outcome:
    """Return the outcome before any action: zeros."""
    return jax.tree.map(jnp.zeros_like, jax.eval_shape(step, state, jnp.int32(0))[1])


def step(state: State, action: Int[Array, ""]) -> tuple[State, Outcome]:
    """Take one action in one world."""
    level = state.level
    front_position = level.agent_position + jnp.int32(DIRECTIONS)[level.agent_direction]
    front = _cell_at(level, front_position)
    effect = _effect(state, front_position, front, action)
    carrying = effect.carrying
    changes = state.changes + _difference(effect.position, effect.before, effect.after)
    changes = changes + _difference(jnp.asarray(CARRIED_POSITION), state.carrying, carrying)
    moves = (action == FORWARD) & c.can_enter(front)
    turn = (action == RIGHT).astype(jnp.int32) - (action == LEFT).astype(jnp.int32)
    level = level._replace(
        cells=_set_cell(level.cells, effect.position, effect.after),
        agent_position=jnp.where(moves, front_position, level.agent_position),
        agent_direction=(level.agent_direction + turn) % 4,
    )

    success = _is_success(level, front, carrying, action)
    interacted = (effect.before != effect.after) | (state.carrying != carrying)
    step_count = state.step_count + 1
    first_success = success & ~state.succeeded
    outcome = Outcome(
        reward=jnp.where(first_success, 1 - 0.9 * step_count / level.max_steps, jnp.float32(0)),
        success=success,
        died=(action == FORWARD) & (c.kind_of(front) == c.KIND_LAVA),
        timed_out=step_count >= level.max_steps,
        interaction=jnp.where(interacted, _hash_interaction(state.changes, changes, level), 0),
    )
    return State(level, carrying, step_count, state.succeeded | success, changes), outcome


def episode_ends(outcome: Outcome, *, explore: bool) -> tuple[Bool[Array, "*N"], Bool[Array, "*N"]]:
    """Return `terminated` and `truncated`, never both true.

    Args:
        outcome: outcome of a step, in one world or `N`.
        explore: whether episodes continue after success.
    """
    terminated = outcome.died if explore else outcome.died | outcome.success
    return terminated, outcome.timed_out & ~terminated


class Effect(NamedTuple):
    """An action's effect on objects: at most one cell and the carried object change."""

    position: Int[Array, "2"]  # (x, y) of the cell
    before: UInt8[Array, ""]  # the cell before the action
    after: UInt8[Array, ""]  # the cell after the action
    carrying: UInt8[Array, ""]  # the carried object after the action


def _effect(
    state: State, front_position: Int[Array, "2"], front: UInt8[Array, ""], action: Int[Array, ""]
) -> Effect:
    """Return an action's effect. DROP may recolour a noisy ball anywhere."""
    carrying, noisy_ball = state.carrying, state.level.noisy_ball
    is_noisy = noisy_ball > 0
    picks = (action == PICKUP) & c.can_pick_up(front) & (carrying == c.EMPTY)
    drops = (action == DROP) & (front == c.EMPTY) & (carrying != c.EMPTY) & ~is_noisy
    toggled = jnp.where(action == TOGGLE, _toggle(front, carrying), front)
    front_after = jnp.where(picks, c.EMPTY, jnp.where(drops, carrying, toggled))
    carrying_after = jnp.where(picks, front, jnp.where(drops, c.EMPTY, carrying))

    recolours = (action == DROP) & is_noisy
    recolours_grid = recolours & (carrying == c.EMPTY)  # otherwise the agent carries the ball
    ball_position = jnp.stack(unpack_position(noisy_ball))
    before = jnp.where(recolours_grid, _cell_at(state.level, ball_position), front)
    color = _random_color(state.level.seed, state.step_count)
    return Effect(
        position=jnp.where(recolours_grid, ball_position, front_position),
        before=before,
        after=jnp.where(recolours_grid, _recolor(before, color), front_after).astype(jnp.uint8),
        carrying=jnp.where(recolours & ~recolours_grid, _recolor(carrying, color), carrying_after),
    )


def _random_color(seed: UInt32[Array, ""], step_count: Int[Array, ""]) -> UInt8[Array, ""]:
    """Return a random colour, determined by seed and step."""
    color = mix(mix(seed) + step_count.astype(jnp.uint32)) % len(c.COLORS)
    return color.astype(jnp.uint8)


def _recolor(cell: UInt8[Array, ""], color: UInt8[Array, ""]) -> UInt8[Array, ""]:
    return c.kind_of(cell) << 3 | color


def _toggle(front: UInt8[Array, ""], carrying: UInt8[Array, ""]) -> UInt8[Array, ""]:
    """Return the cell in front after a toggle: it opens or closes a door, or unpacks a box."""
    kind, color = c.kind_of(front), c.color_of(front)
    unlocks = carrying == c.key(color)
    opens = (kind == c.KIND_CLOSED) | ((kind == c.KIND_LOCKED) & unlocks)
    toggled = jnp.where(opens, c.open_door(color), front)
    toggled = jnp.where(kind == c.KIND_OPEN, c.closed_door(color), toggled)
    return jnp.where(c.is_box(front), c.contents_of(front), toggled).astype(jnp.uint8)


def _is_success(
    level: Level, front: UInt8[Array, ""], carrying: UInt8[Array, ""], action: Int[Array, ""]
) -> Bool[Array, ""]:
    """Return whether `action` fulfilled the level's task, by MiniGrid's definition."""
    on_goal = (action == FORWARD) & (c.kind_of(front) == c.KIND_GOAL)
    holds_target = (action == PICKUP) & (carrying == level.target)
    return (
        ((level.task == REACH_GOAL) & on_goal)
        | ((level.task == PICK_UP) & holds_target)
        | ((level.task == OPEN_DOOR) & (action == TOGGLE) & _target_is_open(level))
    )


def _target_is_open(level: Level) -> Bool[Array, ""]:
    x, y = unpack_position(level.target)
    return c.kind_of(level.cells[y + MARGIN, x + MARGIN]) == c.KIND_OPEN


# Position at which the carried object is hashed: an outer wall, which never changes itself.
CARRIED_POSITION = np.array([0, 0])


def _difference(
    position: Int[Array, "2"], before: UInt8[Array, ""], after: UInt8[Array, ""]
) -> UInt32[Array, "2"]:
    """Return what one changed cell adds to `State.changes`: zero if it did not change.

    `State.changes` is the sum over cells of (now - at the start) times a random odd number that
    depends on the position. It identifies a grid without reading the unchanged cells.
    """
    cell = jnp.asarray(pack_position(position[0], position[1]), jnp.uint32)
    weight = mix(cell * 2 + jnp.arange(2, dtype=jnp.uint32)) | 1
    return weight * (after.astype(jnp.uint32) - before.astype(jnp.uint32))


def _hash_interaction(
    before: UInt32[Array, "2"], after: UInt32[Array, "2"], level: Level
) -> UInt32[Array, "2"]:
    """Return a hash of the full states before and after, with the agent's position and direction.

    The published code compares drawings of the grid, which show the agent: picking up the same
    key from two sides is two interactions.
    """
    here = pack_position(level.agent_position[0], level.agent_position[1])
    agent = jnp.asarray(here | level.agent_direction << 16, jnp.uint32)
    return mix(mix(mix(before) * 3 + after) + agent) | 1


def _cell_at(level: Level, position: Int[Array, "2"]) -> UInt8[Array, ""]:
    return level.cells[position[1] + MARGIN, position[0] + MARGIN]


def _set_cell(
    cells: UInt8[Array, "rows columns"], position: Int[Array, "2"], value: UInt8[Array, ""]
) -> UInt8[Array, "rows columns"]:
    return cells.at[position[1] + MARGIN, position[0] + MARGIN].set(value, mode="promise_in_bounds")
