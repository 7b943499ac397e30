"""The first states of navix's own environments, as levels of ours. Importing this imports navix.

navix's positions are (row, column); its directions and colours are numbered as MiniGrid's are. A
thing that is inside a box, or that this level does not have, lies outside the grid.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Integer, UInt8
from navix.entities import Entities

from envs.minigrid import cells as c
from envs.minigrid.level import NO_TASK, OPEN_DOOR, REACH_GOAL, Level, make_level, place

NO_KEY = -1  # what navix's doors ask for that are not locked
MISSION = "mission"  # tells which object the task is about


def to_level(state: Any, task: int, thing: str, max_steps: int) -> tuple[Level, Bool[Array, ""]]:
    """Turns the first state of an episode in navix into a level.

    Args:
        state: navix's `State`, not a batch.
        task: one of `level.TASKS`.
        thing: the kind of the door to open or the object to pick up, of which there is one, or
            `MISSION`; not used otherwise.
        max_steps: time limit in steps.

    Returns:
        The level, and whether it may be played: each thing has a cell of its own outside the
        walls, the agent stands on free ground or the goal, keys have the colour of the doors
        that they open, and the task's object is there and cannot be taken for another one.
    """
    player = state.get_player()
    grid, ok = _grid(state)
    under = grid[_indices(grid, player.position)]
    stands = _is_inside(grid, player.position) & ((under == c.EMPTY) | (under == c.GOAL))
    target, has_target = _target(state, grid, task, thing)
    level = make_level(
        grid,
        player.position[::-1],
        player.direction,
        task=task,
        target=target,
        max_steps=max_steps,
    )
    return level, ok & stands & has_target & _keys_fit(state)


def _grid(state: Any) -> tuple[UInt8[Array, "height width"], Bool[Array, ""]]:
    """Returns our grid, and whether each thing has a cell of its own outside the walls."""
    grid = jnp.where(state.grid == 0, c.EMPTY, c.WALL).astype(jnp.uint8)
    if Entities.WALL in state.entities:
        walls = state.entities[Entities.WALL].position
        grid = grid.at[_indices(grid, walls)].set(c.WALL, mode="drop")
    taken = (grid == c.WALL).astype(jnp.int32)
    for name, bytes_of in BYTES.items():
        if name in state.entities:
            indices = _indices(grid, state.entities[name].position)
            grid = grid.at[indices].set(bytes_of(state).astype(jnp.uint8), mode="drop")
            taken = taken.at[indices].add(1, mode="drop")
    return grid, (taken <= 1).all()


def _target(
    state: Any, grid: UInt8[Array, "height width"], task: int, thing: str
) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """Returns what `Level.target` holds, and whether the task can be fulfilled by nothing else."""
    nothing = jnp.int32(0)
    if task == NO_TASK:
        return nothing, jnp.array(True)
    if task == REACH_GOAL:
        return nothing, (grid == c.GOAL).any()
    objects = state.mission if thing == MISSION else state.entities[thing]
    position = objects[0].position
    target, is_inside = grid[_indices(grid, position)], _is_inside(grid, position)
    if task == OPEN_DOOR:
        is_shut = (c.kind_of(target) == c.KIND_CLOSED) | (c.kind_of(target) == c.KIND_LOCKED)
        return jnp.asarray(place(position[1], position[0])), is_inside & is_shut
    is_hidden_too = (c.is_box(grid) & (c.contents_of(grid) == target)).any()
    is_only_one = ((grid == target).sum() == 1) & ~is_hidden_too
    return target.astype(jnp.int32), is_inside & c.can_pick_up(target) & is_only_one


def _keys_fit(state: Any) -> Bool[Array, ""]:
    """True if every key has the colour of the doors that it opens."""
    if Entities.DOOR not in state.entities or Entities.KEY not in state.entities:
        return jnp.array(True)
    doors, keys = state.get_doors(), state.get_keys()
    return (~_has_id(state, doors.requires) | (doors.colour[:, None] == keys.colour)).all()


def _doors(state: Any) -> Integer[Array, " doors"]:
    """A door that no key opens is a wall: such are KeyCorridor's where it needs no door."""
    doors = state.get_doors()
    locked = jnp.where(_has_id(state, doors.requires).any(1), c.KIND_LOCKED, c.KIND_WALL)
    shut = jnp.where(doors.requires == NO_KEY, c.KIND_CLOSED, locked)
    kind = jnp.where(jnp.asarray(doors.open, bool), c.KIND_OPEN, shut)
    return jnp.where(kind == c.KIND_WALL, c.WALL, kind << 3 | doors.colour)


def _boxes(state: Any) -> Integer[Array, " boxes"]:
    """What a box holds in navix is a key, or nothing."""
    boxes = state.get_boxes()
    kind = jnp.full(boxes.shape, c.KIND_BOX)
    if Entities.KEY in state.entities:
        holds = _has_id(state, boxes.pocket)
        key_color = jnp.where(holds, state.get_keys().colour, 0).max(1)
        kind = jnp.where(holds.any(1), c.KIND_BOX_KEY + key_color, kind)
    return kind << 3 | boxes.colour


def _has_id(state: Any, ids: Int[Array, " things"]) -> Bool[Array, "things keys"]:
    """True where a key has the id that a door asks for, or that is in a box."""
    keys = state.entities.get(Entities.KEY)
    return ids[:, None] == (jnp.zeros(0, jnp.int32) if keys is None else keys.id)


# The bytes of each kind of thing.
BYTES: dict[str, Callable[[Any], Integer[Array, " things"]]] = {
    Entities.GOAL: lambda state: jnp.full(state.get_goals().shape, c.GOAL),
    Entities.LAVA: lambda state: jnp.full(state.get_lavas().shape, c.LAVA),
    Entities.DOOR: _doors,
    Entities.KEY: lambda state: c.KIND_KEY << 3 | state.get_keys().colour,
    Entities.BALL: lambda state: c.KIND_BALL << 3 | state.get_balls().colour,
    Entities.BOX: _boxes,
}


def _is_inside(
    grid: UInt8[Array, "height width"], positions: Int[Array, "*things 2"]
) -> Bool[Array, "*things"]:
    return ((positions >= 0) & (positions < jnp.array(grid.shape))).all(-1)


def _indices(
    grid: UInt8[Array, "height width"], positions: Int[Array, "*things 2"]
) -> tuple[Int[Array, "*things"], Int[Array, "*things"]]:
    """Returns rows and columns; both are too large, not negative, outside the grid.

    A negative index would count from the other side.
    """
    height, width = grid.shape
    is_inside = _is_inside(grid, positions)
    row = jnp.where(is_inside, positions[..., 0], height)
    return row, jnp.where(is_inside, positions[..., 1], width)
