"""Crossings and gaps: rivers of lava (or walls) between the agent and the goal.

Lava ends the episode, also where the agent only explores: "states where it can die are still
terminal" (paper, section 3.2).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt8

from envs.minigrid import cells as c
from envs.minigrid.generators.generator import (
    Generator,
    coordinates,
    empty_room,
    one_by_one,
    put,
)
from envs.minigrid.level import REACH_GOAL, Level, make_level

MIN_SIZE = 5


def crossing(name: str, size: int, num_crossings: int, obstacle: int = c.LAVA) -> Generator:
    """LavaCrossing, or SimpleCrossing if the rivers are walls (MiniGrid's `CrossingEnv`).

    Args:
        name: the environment's name.
        size: cells along a side of the grid, outer wall included (odd, at least 5).
        num_crossings: rivers, each with one place to cross it.
        obstacle: the cell that rivers are made of.

    Raises:
        ValueError: the size is even or too small, or the rivers do not fit.
    """
    if size < MIN_SIZE or size % 2 == 0:
        raise ValueError(f"{name}: the size must be odd and at least {MIN_SIZE}, not {size}")
    most = 2 * len(range(2, size - 2, 2))
    if not 1 <= num_crossings <= most:
        raise ValueError(
            f"{name}: a grid of size {size} has 1 to {most} rivers, not {num_crossings}"
        )
    max_steps = 4 * size**2

    def draw_one(key: PRNGKeyArray) -> tuple[Level, Bool[Array, ""]]:
        keys = jax.random.split(key, 3)
        places = jnp.arange(2, size - 2, 2)
        chosen = jax.random.permutation(keys[0], most) < num_crossings
        upright, level = jnp.split(chosen, 2)  # a river at each of `places`, in both directions
        grid = _rivers(size, places, upright, level, obstacle)
        goes_right = jnp.arange(num_crossings) < upright.sum()  # across an upright river
        path = jax.random.permutation(keys[1], goes_right)
        ends = [jnp.sort(jnp.where(there, places, size - 1)) for there in (upright, level)]
        grid = _open_path(keys[2], grid, path, *(_with_borders(end, size) for end in ends))
        return _with_agent_and_goal(grid, max_steps), jnp.array(True)

    return one_by_one(name, size, size, max_steps, REACH_GOAL, draw_one, deadly=obstacle == c.LAVA)


def gap(name: str, size: int, obstacle: int = c.LAVA) -> Generator:
    """LavaGap: one upright strip of lava with one gap (MiniGrid's `LavaGapEnv`).

    Args:
        name: the environment's name.
        size: cells along a side of the grid, outer wall included (at least 5).
        obstacle: the cell that the strip is made of.

    Raises:
        ValueError: the grid is too small.
    """
    if size < MIN_SIZE:
        raise ValueError(f"{name}: the size must be at least {MIN_SIZE}, not {size}")
    max_steps = 4 * size**2

    def draw_one(key: PRNGKeyArray) -> tuple[Level, Bool[Array, ""]]:
        key_x, key_y = jax.random.split(key)
        gap_x = jax.random.randint(key_x, (), 2, size - 2)
        gap_y = jax.random.randint(key_y, (), 1, size - 1)
        x, y = coordinates(size, size)
        strip = (x == gap_x) & (y > 0) & (y < size - 1)
        grid = jnp.where(strip & (y != gap_y), obstacle, empty_room(size, size))
        return _with_agent_and_goal(grid.astype(jnp.uint8), max_steps), jnp.array(True)

    return one_by_one(name, size, size, max_steps, REACH_GOAL, draw_one, deadly=obstacle == c.LAVA)


def _rivers(
    size: int,
    places: Int[Array, " n"],
    upright: Bool[Array, " n"],
    level: Bool[Array, " n"],
    obstacle: int,
) -> UInt8[Array, "size size"]:
    x, y = coordinates(size, size)
    is_wall = jnp.zeros(size, bool)
    river = is_wall.at[places].set(upright)[None, :] | is_wall.at[places].set(level)[:, None]
    inside = (x > 0) & (x < size - 1) & (y > 0) & (y < size - 1)
    return jnp.where(river & inside, obstacle, empty_room(size, size)).astype(jnp.uint8)


def _with_borders(rivers: Int[Array, " n"], size: int) -> Int[Array, " m"]:
    """Returns where the rooms end: the wall, every river in order, the other wall."""
    return jnp.concatenate([jnp.array([0]), rivers, jnp.array([size - 1])])


def _open_path(
    key: PRNGKeyArray,
    grid: UInt8[Array, "size size"],
    path: Bool[Array, " crossings"],
    ends_x: Int[Array, " m"],
    ends_y: Int[Array, " m"],
) -> UInt8[Array, "size size"]:
    """Opens each river once, somewhere in the room that the path comes to."""
    room_x = room_y = jnp.int32(0)
    for goes_right, opening_key in zip(path, jax.random.split(key, len(path)), strict=True):
        key_x, key_y = jax.random.split(opening_key)
        right, below = ends_x[room_x + 1], ends_y[room_y + 1]
        inside_x = jax.random.randint(key_x, (), ends_x[room_x] + 1, right)
        inside_y = jax.random.randint(key_y, (), ends_y[room_y] + 1, below)
        x, y = jnp.where(goes_right, right, inside_x), jnp.where(goes_right, inside_y, below)
        grid = put(grid, jnp.stack([x, y]), c.EMPTY)
        room_x, room_y = room_x + goes_right, room_y + ~goes_right
    return grid


def _with_agent_and_goal(grid: UInt8[Array, "size size"], max_steps: int) -> Level:
    """Puts the agent in the upper left corner, facing right, and the goal in the lower right."""
    corner = len(grid) - 2
    grid = put(grid, jnp.array([corner, corner]), c.GOAL)
    return make_level(grid, jnp.array([1, 1]), 0, task=REACH_GOAL, max_steps=max_steps)
