"""Convert the first states of navix's environments to levels. Importing this imports navix.

navix's positions are (row, column). Its directions and colours have MiniGrid's numbers. Objects
inside boxes, and objects that a level does not have, have positions outside the grid.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Integer, UInt8
from navix.entities import Entities

from envs.minigrid import cells as c
from envs.minigrid.level import NO_TASK, OPEN_DOOR, REACH_GOAL, Level, make_level, pack_position

NO_KEY = -1  # required key of navix's doors that are not locked
MISSION = "mission"  # stands for the object that navix's mission is about


def to_level(state: Any, task: int, thing: str, max_steps: int) -> tuple[Level, Bool[Array, ""]]:
    """Convert the first state of an episode in navix to a level.

    Args:
        state: navix's `State`, not a batch.
        task: index into `level.TASKS`.
        thing: kind of the only door to open or object to pick up, or `MISSION`; otherwise unused.
        max_steps: time limit in steps.

    Returns:
        The level, and whether it may be played: no two objects share a cell, none is in a wall,
        the agent is on free ground or the goal, keys have the colour of the doors that they open,
        and the task's object exists and no other object looks like it.
    """
    player = state.get_player()
    grid, ok = _grid(state)
    under = grid[_indices(grid, player.position)]
    on_ground = _is_inside(grid, player.position) & ((under == c.EMPTY) | (under == c.GOAL))
    target, has_target = _target(state, grid, task, thing)
    level = make_level(
        grid,
        player.position[::-1],
        player.direction,
        task=task,
        target=target,
        max_steps=max_steps,
    )
    return level, ok & on_ground & has_target & _keys_fit(state)


def _grid(state: Any) -> tuple[UInt8[Array, "height width"], Bool[Array, ""]]:
    """Return our grid, and whether no two objects share a cell and none is in a wall."""
    grid = jnp.where(state.grid == 0, c.EMPTY, c.WALL).astype(jnp.uint8)
    if Entities.WALL in state.entities:
        walls = state.entities[Entities.WALL].position
        grid = grid.at[_indices(grid, walls)].set(c.WALL, mode="drop")
    taken = (grid == c.WALL).astype(jnp.int32)
    for name, cells_of in CELLS_OF.items():
        if name in state.entities:
            indices = _indices(grid, state.entities[name].position)
            grid = grid.at[indices].set(cells_of(state).astype(jnp.uint8), mode="drop")
            taken = taken.at[indices].add(1, mode="drop")
    return grid, (taken <= 1).all()


def _target(
    state: Any, grid: UInt8[Array, "height width"], task: int, thing: str
) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """Return `Level.target`, and whether exactly one object fulfils the task."""
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
        return jnp.asarray(pack_position(position[1], position[0])), is_inside & is_shut
    is_hidden_too = (c.is_box(grid) & (c.contents_of(grid) == target)).any()
    is_only_one = ((grid == target).sum() == 1) & ~is_hidden_too
    return target.astype(jnp.int32), is_inside & c.can_pick_up(target) & is_only_one


def _keys_fit(state: Any) -> Bool[Array, ""]:
    """Return whether every key has the colour of the doors that it opens."""
    if Entities.DOOR not in state.entities or Entities.KEY not in state.entities:
        return jnp.array(True)
    doors, keys = state.get_doors(), state.get_keys()
    return (~_has_id(state, doors.requires) | (doors.colour[:, None] == keys.colour)).all()


def _doors(state: Any) -> Integer[Array, " doors"]:
    """Return the byte of each door. A door that no key opens is a wall, as in KeyCorridor."""
    doors = state.get_doors()
    locked = jnp.where(_has_id(state, doors.requires).any(1), c.KIND_LOCKED, c.KIND_WALL)
    shut = jnp.where(doors.requires == NO_KEY, c.KIND_CLOSED, locked)
    kind = jnp.where(jnp.asarray(doors.open, bool), c.KIND_OPEN, shut)
    return jnp.where(kind == c.KIND_WALL, c.WALL, kind << 3 | doors.colour)


def _boxes(state: Any) -> Integer[Array, " boxes"]:
    """Return the byte of each box, which holds a key or nothing in navix."""
    boxes = state.get_boxes()
    kind = jnp.full(boxes.shape, c.KIND_BOX)
    if Entities.KEY in state.entities:
        holds = _has_id(state, boxes.pocket)
        key_color = jnp.where(holds, state.get_keys().colour, 0).max(1)
        kind = jnp.where(holds.any(1), c.KIND_BOX_KEY + key_color, kind)
    return kind << 3 | boxes.colour


def _has_id(state: Any, ids: Int[Array, " things"]) -> Bool[Array, "things keys"]:
    """Return which keys have which of `ids` (the keys that doors require or boxes hold)."""
    keys = state.entities.get(Entities.KEY)
    return ids[:, None] == (jnp.zeros(0, jnp.int32) if keys is None else keys.id)


# Functions from navix's state to the bytes of all objects of one kind.
CELLS_OF: dict[str, Callable[[Any], Integer[Array, " things"]]] = {
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
    """Return rows and columns. For positions outside the grid, both are too large.

    A negative index would count from the end.
    """
    height, width = grid.shape
    is_inside = _is_inside(grid, positions)
    row = jnp.where(is_inside, positions[..., 0], height)
    return row, jnp.where(is_inside, positions[..., 1], width)
