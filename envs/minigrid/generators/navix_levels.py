"""navix's environments as generators of levels, by navix's names (`Navix-FourRooms-v0`).

Importing this module imports navix, which takes seconds. Only grid, agent, task and time limit are
navix's; the rules are MiniGrid's. In navix a key opens the doors that require its id, and is used
up; here it opens every door of its colour, and is kept. Lava always ends an episode here.
"""

from typing import Any

import jax
import jax.numpy as jnp
import navix
from jaxtyping import Array, PRNGKeyArray, UInt8
from navix import observations, rewards, transitions
from navix.entities import Entities
from navix.environments.multi_room import MULTI_ROOM_REWARD_FN

from envs.errors import UnknownEnvironment, UnsupportedEnvironment
from envs.minigrid import cells as c
from envs.minigrid.generators.catalogue import OTHER_RULES
from envs.minigrid.generators.generator import Generator, SampledLevel, make_generator
from envs.minigrid.level import NO_TASK, OPEN_DOOR, PICK_UP, REACH_GOAL, make_level, pack_position

PREFIX = "Navix-"  # of all names of navix's own environments
TASKS = {
    rewards.free: NO_TASK,
    rewards.on_goal_reached: REACH_GOAL,
    MULTI_ROOM_REWARD_FN: REACH_GOAL,
    rewards.on_door_open: OPEN_DOOR,
    rewards.on_box_pickup: PICK_UP,
    rewards.on_target_fetched: PICK_UP,
}
NO_KEY = -1  # required key of a door without a lock

# Our kinds by navix's types, which are MiniGrid's (but type 1 is "floor" there, "empty" here).
_KINDS = (
    c.KIND_UNSEEN, c.KIND_EMPTY, c.KIND_WALL, c.KIND_FLOOR, c.KIND_OPEN,
    c.KIND_KEY, c.KIND_BALL, c.KIND_BOX, c.KIND_GOAL, c.KIND_LAVA,
)  # fmt: skip


def navix_levels(name: str) -> Generator:
    """Return a generator of the levels of a registered environment of navix.

    Raises:
        UnknownEnvironment: navix has no such environment; the message suggests similar names.
        UnsupportedEnvironment: MiniGrid's rules or our tasks do not cover the environment.
    """
    known = [registered for registered in navix.registry() if registered.startswith(PREFIX)]
    if name not in known:
        raise UnknownEnvironment(name, known)
    environment = navix.make(name, observation_fn=observations.none)
    things = jax.eval_shape(environment.reset, jax.random.key(0)).state.entities
    if reason := _why_refused(environment, things):
        raise UnsupportedEnvironment(
            name, f"{reason}; a function make(num_worlds) with from_navix plays it by navix's rules"
        )
    task, max_steps = TASKS[environment.reward_fn], environment.max_steps

    def sample_level(key: PRNGKeyArray) -> SampledLevel:
        return to_level(environment.reset(key).state, task, max_steps)

    return make_generator(
        name,
        environment.width,
        environment.height,
        max_steps,
        task,
        sample_level,
        deadly=Entities.LAVA in things,
    )


def _why_refused(environment: Any, things: dict[str, Any]) -> str:
    """Return why an environment with such things cannot be imported, or ''."""
    if Entities.BALL in things and (
        environment.transitions_fn != transitions.deterministic_transition
    ):
        return "its balls move by themselves"
    known = environment.reward_fn in TASKS
    return OTHER_RULES.get(
        type(environment).__name__, "" if known else "its reward is none of our tasks"
    )


def to_level(state: Any, task: int, max_steps: int) -> SampledLevel:
    """Convert the first state of an episode in navix to a level.

    Args:
        state: navix's `State`, not a batch.
        task: index into `level.TASKS`.
        max_steps: time limit in steps.

    Returns:
        The level, and whether it may be played: no other object looks like the one to pick up.
    """
    grid, target, only_one = _grid(state), jnp.int32(0), jnp.array(True)
    if task == OPEN_DOOR:
        y, x = state.get_doors().position[0]
        target = jnp.asarray(pack_position(x, y))
    elif task == PICK_UP:
        y, x = (state.mission or state.get_boxes())[0].position
        target = grid[y, x].astype(jnp.int32)
        only_one = (grid == grid[y, x]).sum() == 1
    player = state.get_player()
    level = make_level(
        grid, player.position[::-1], player.direction, task=task, target=target, max_steps=max_steps
    )
    return level, only_one


def _grid(state: Any) -> UInt8[Array, "height width"]:
    """Return our grid: what navix's symbols show, and the doors and boxes' contents they hide."""
    things = {kind: thing for kind, thing in state.entities.items() if kind != Entities.PLAYER}
    symbols = observations.symbolic(state.replace(entities=things))
    kind, color, door_state = jnp.moveaxis(symbols, -1, 0)
    grid = (jnp.array(_KINDS, jnp.uint8)[kind] + door_state) << 3 | color
    keys = state.get_keys() if Entities.KEY in things else None
    key_ids = jnp.zeros(0, jnp.int32) if keys is None else keys.id
    if Entities.DOOR in things:  # one that no key opens is a wall, as KeyCorridor means it
        doors = state.get_doors()
        opens = jnp.isin(doors.requires, jnp.append(key_ids, NO_KEY))
        grid = _put(grid, doors.position, ~opens, c.WALL)
    if Entities.BOX in things and keys is not None:
        boxes = state.get_boxes()
        holds = boxes.pocket[:, None] == key_ids
        inside = c.KIND_BOX_KEY + jnp.where(holds, keys.colour, 0).max(1)
        grid = _put(grid, boxes.position, holds.any(1), inside << 3 | boxes.colour)
    return grid


def _put(
    grid: UInt8[Array, "height width"], positions: Array, wanted: Array, cells: Array | int
) -> UInt8[Array, "height width"]:
    """Return the grid with `cells` at the wanted positions (row, column).

    An object that a level lacks, or that a box holds, has a negative position.
    """
    row = jnp.where(wanted & (positions >= 0).all(-1), positions[:, 0], len(grid))
    return grid.at[row, positions[:, 1]].set(jnp.asarray(cells, jnp.uint8), mode="drop")
