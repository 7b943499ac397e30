"""The rules of one gridworld, MiniGrid's to the letter.

The key is kept after unlocking, a door can be closed again, a toggled box leaves its
contents behind, and only one object is carried at a time. Success is MiniGrid's
`terminated` without lava: it can fire again while the episode goes on (a second `pickup`
while the target is carried, a second step onto the goal), as it does in pre-training.

Where a level has a noisy ball (MultiRoomNoisyTV, paper, appendix "noisy environment"), DROP drops
nothing and recolours that ball instead; it can be picked up, as in the published code.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8, UInt32

from envs.minigrid import cells as c
from envs.minigrid.level import DIRECTIONS, MARGIN, OPEN_DOOR, PICK_UP, REACH_GOAL, Level, place

LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE, DONE = range(7)
ACTIONS = ("left", "right", "forward", "pickup", "drop", "toggle", "done")


class State(NamedTuple):
    """One gridworld at one moment."""

    level: Level  # the grid and the agent as they are now; task and limit as they began
    carrying: UInt8[Array, ""]  # the carried cell, EMPTY if none
    step_count: Int[Array, ""]  # steps played in this episode
    succeeded: Bool[Array, ""]  # the task was fulfilled earlier in this episode
    changes: UInt32[Array, "2"]  # hash of how grid and carried object differ from the start


class Outcome(NamedTuple):
    """What one action brought."""

    reward: Float[Array, ""]  # 1 - 0.9 t / T at the first success of the episode, else 0
    success: Bool[Array, ""]  # the action fulfilled the task
    died: Bool[Array, ""]  # the action led into lava
    timed_out: Bool[Array, ""]  # the time limit is reached
    interacted: Bool[Array, ""]  # grid or carried object changed
    interaction: UInt32[Array, "2"]  # key of the full states (before, after); zeros if none


def start(level: Level) -> State:
    """Returns the first state of an episode in `level`."""
    return State(
        level=level,
        carrying=jnp.full_like(level.task, c.EMPTY, jnp.uint8),
        step_count=jnp.zeros_like(level.task),
        succeeded=jnp.zeros_like(level.task, bool),
        changes=jnp.zeros((2,), jnp.uint32),
    )


def step(state: State, action: Int[Array, ""]) -> tuple[State, Outcome]:
    """Plays one action in one world."""
    level = state.level
    front_position = level.agent_position + jnp.array(DIRECTIONS)[level.agent_direction]
    front = _cell_at(level, front_position)
    handled = _handle(state, front_position, front, action)
    carrying = handled.carrying
    changes = state.changes + _difference(handled.position, handled.before, handled.after)
    changes = changes + _difference(jnp.asarray(CARRIED), state.carrying, carrying)
    moves = (action == FORWARD) & c.can_enter(front)
    turn = (action == RIGHT).astype(jnp.int32) - (action == LEFT).astype(jnp.int32)
    level = level._replace(
        cells=_set_cell(level.cells, handled.position, handled.after),
        agent_position=jnp.where(moves, front_position, level.agent_position),
        agent_direction=(level.agent_direction + turn) % 4,
    )

    success = _fulfils(level, front, carrying, action)
    interacted = (handled.before != handled.after) | (state.carrying != carrying)
    step_count = state.step_count + 1
    first_success = success & ~state.succeeded
    outcome = Outcome(
        reward=jnp.where(first_success, 1 - 0.9 * step_count / level.max_steps, jnp.float32(0)),
        success=success,
        died=(action == FORWARD) & (c.kind_of(front) == c.KIND_LAVA),
        timed_out=step_count >= level.max_steps,
        interacted=interacted,
        interaction=jnp.where(interacted, _interaction(state.changes, changes, level), 0),
    )
    return State(level, carrying, step_count, state.succeeded | success, changes), outcome


class Handled(NamedTuple):
    """What an action does to things: one cell and what is carried, as they are afterwards."""

    position: Int[Array, "2"]  # (x, y) of the only cell that may change
    before: UInt8[Array, ""]
    after: UInt8[Array, ""]
    carrying: UInt8[Array, ""]


def _handle(
    state: State, front_position: Int[Array, "2"], front: UInt8[Array, ""], action: Int[Array, ""]
) -> Handled:
    """Picks up, drops, toggles; or has the noisy ball change its colour, wherever it is."""
    carrying, noisy_ball = state.carrying, state.level.noisy_ball
    is_noisy = noisy_ball > 0
    picks = (action == PICKUP) & c.can_pick_up(front) & (carrying == c.EMPTY)
    drops = (action == DROP) & (front == c.EMPTY) & (carrying != c.EMPTY) & ~is_noisy
    toggled = jnp.where(action == TOGGLE, _toggle(front, carrying), front)
    front_after = jnp.where(picks, c.EMPTY, jnp.where(drops, carrying, toggled))
    carrying_after = jnp.where(picks, front, jnp.where(drops, c.EMPTY, carrying))

    recolours = (action == DROP) & is_noisy
    lies = recolours & (carrying == c.EMPTY)
    ball_position = jnp.stack([noisy_ball & 255, noisy_ball >> 8])
    before = jnp.where(lies, _cell_at(state.level, ball_position), front)
    color = _random_color(state.level.seed, state.step_count)
    return Handled(
        position=jnp.where(lies, ball_position, front_position),
        before=before,
        after=jnp.where(lies, _recolor(before, color), front_after).astype(jnp.uint8),
        carrying=jnp.where(recolours & ~lies, _recolor(carrying, color), carrying_after),
    )


def _random_color(seed: UInt32[Array, ""], step_count: Int[Array, ""]) -> UInt8[Array, ""]:
    """Returns one of the six colours, by chance and yet the same on every replay."""
    color = _mix(_mix(seed) + step_count.astype(jnp.uint32)) % len(c.COLORS)
    return color.astype(jnp.uint8)


def _recolor(cell: UInt8[Array, ""], color: UInt8[Array, ""]) -> UInt8[Array, ""]:
    return c.kind_of(cell) << 3 | color


def _toggle(front: UInt8[Array, ""], carrying: UInt8[Array, ""]) -> UInt8[Array, ""]:
    """Returns the cell in front after a toggle: a door opened or closed, a box unpacked."""
    kind, color = c.kind_of(front), c.color_of(front)
    unlocks = carrying == (c.KIND_KEY << 3 | color)
    opens = (kind == c.KIND_CLOSED) | ((kind == c.KIND_LOCKED) & unlocks)
    toggled = jnp.where(opens, c.KIND_OPEN << 3 | color, front)
    toggled = jnp.where(kind == c.KIND_OPEN, c.KIND_CLOSED << 3 | color, toggled)
    return jnp.where(c.is_box(front), c.contents_of(front), toggled).astype(jnp.uint8)


def _fulfils(
    level: Level,
    front: UInt8[Array, ""],
    carrying: UInt8[Array, ""],
    action: Int[Array, ""],
) -> Bool[Array, ""]:
    """True where `action` fulfils the level's task, as MiniGrid's environments test it."""
    on_goal = (action == FORWARD) & (c.kind_of(front) == c.KIND_GOAL)
    holds_target = (action == PICKUP) & (carrying == level.target)
    return (
        ((level.task == REACH_GOAL) & on_goal)
        | ((level.task == PICK_UP) & holds_target)
        | ((level.task == OPEN_DOOR) & (action == TOGGLE) & _target_is_open(level))
    )


def _target_is_open(level: Level) -> Bool[Array, ""]:
    x, y = level.target & 255, level.target >> 8
    return c.kind_of(level.cells[y + MARGIN, x + MARGIN]) == c.KIND_OPEN


CARRIED = np.array([0, 0])  # a wall stands there, so no cell that changes shares its hash


def _difference(
    position: Int[Array, "2"], before: UInt8[Array, ""], after: UInt8[Array, ""]
) -> UInt32[Array, "2"]:
    """Returns what one changed cell adds to `State.changes`: zero if it did not change.

    The sum over cells of (now - at first) times a random odd number of its position tells
    grids apart, and needs no look at the cells that stayed as they were.
    """
    cell = jnp.asarray(place(position[0], position[1]), jnp.uint32)
    weight = _mix(cell * 2 + jnp.arange(2, dtype=jnp.uint32)) | 1
    return weight * (after.astype(jnp.uint32) - before.astype(jnp.uint32))


def _interaction(
    before: UInt32[Array, "2"], after: UInt32[Array, "2"], level: Level
) -> UInt32[Array, "2"]:
    """Returns a key of the full states before and after, the agent's place and heading included.

    The published code compares drawings of the grid, which show the agent: picking up the same
    key from two sides is two interactions.
    """
    here = place(level.agent_position[0], level.agent_position[1])
    agent = jnp.asarray(here | level.agent_direction << 16, jnp.uint32)
    return _mix(_mix(_mix(before) * 3 + after) + agent) | 1


def _mix(bits: UInt32[Array, "*shape"]) -> UInt32[Array, "*shape"]:
    """Moves every bit of the result with every bit of the input (MurmurHash3's finalizer)."""
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * jnp.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)


def _cell_at(level: Level, position: Int[Array, "2"]) -> UInt8[Array, ""]:
    return level.cells[position[1] + MARGIN, position[0] + MARGIN]


def _set_cell(
    cells: UInt8[Array, "rows columns"], position: Int[Array, "2"], value: UInt8[Array, ""]
) -> UInt8[Array, "rows columns"]:
    """Returns `cells` with one cell replaced."""
    return cells.at[position[1] + MARGIN, position[0] + MARGIN].set(value, mode="promise_in_bounds")
