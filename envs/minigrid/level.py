"""A level: the grid, the agent, the task and the time limit, all as arrays.

Environments differ only in their levels, so one compiled step plays all of them. As in MiniGrid,
positions are `(x, y)` with x to the right and y down, and directions are 0 right, 1 down, 2 left,
3 up.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, UInt8, UInt32

from envs.minigrid import cells as c

# Extra cells of wall around every grid keep each view inside the array: the agent is inside
# the outer wall (x >= 1) and sees 6 cells ahead (x - 6 >= -5).
MARGIN = 5
MAX_SIDE = 255  # cells of a grid; a packed position has one byte per coordinate

# Tasks.
NO_TASK, REACH_GOAL, OPEN_DOOR, PICK_UP = range(4)
TASKS = ("none", "reach the goal", "open the door", "pick up the object")

RIGHT, DOWN, LEFT, UP = range(4)  # directions, as MiniGrid numbers them
DIRECTIONS = ((1, 0), (0, 1), (-1, 0), (0, -1))


class Level(NamedTuple):
    """The start of one episode."""

    cells: UInt8[Array, "rows columns"]  # the grid, with MARGIN cells of wall on each side
    size: Int[Array, "2"]  # (width, height) of the grid, as MiniGrid counts it
    agent_position: Int[Array, "2"]  # (x, y)
    agent_direction: Int[Array, ""]  # 0..3
    task: Int[Array, ""]  # REACH_GOAL, OPEN_DOOR, PICK_UP or NO_TASK
    target: Int[Array, ""]  # PICK_UP: byte of the object; OPEN_DOOR: packed position of the door
    max_steps: Int[Array, ""]  # the episode's time limit
    noisy_ball: Int[Array, ""]  # packed position of the ball that DROP recolours, 0 if none
    seed: UInt32[Array, ""]  # seed of the noisy ball's colours, the only randomness of an episode


def pack_position(x: Int[Array, ""] | int, y: Int[Array, ""] | int) -> Int[Array, ""] | int:
    """Pack a position into one integer that does not depend on the size of the grid."""
    return y << 8 | x


def unpack_position[Packed: (Array, int)](packed: Packed) -> tuple[Packed, Packed]:
    """Return the `(x, y)` that `pack_position` packed."""
    return packed & 255, packed >> 8


def make_level(
    grid: UInt8[Array, "height width"],
    agent_position: Int[Array, "2"],
    agent_direction: Int[Array, ""] | int,
    *,
    task: int,
    target: Int[Array, ""] | int = 0,
    max_steps: Int[Array, ""] | int,
    noisy_ball: Int[Array, ""] | int = 0,
    seed: UInt32[Array, ""] | int = 0,
) -> Level:
    """Build a level from a grid of cells.

    Args:
        grid: one byte per cell, indexed `grid[y, x]`, including the outer wall.
        agent_position: (x, y).
        agent_direction: 0 right, 1 down, 2 left, 3 up.
        task: an index into `TASKS`.
        target: for PICK_UP, the byte of the object to pick up; for OPEN_DOOR, the packed
            position of the door; otherwise unused.
        max_steps: time limit in steps.
        noisy_ball: packed position of the ball that DROP recolours (MultiRoomNoisyTV), or 0.
        seed: seed of the noisy ball's colours.
    """
    height, width = grid.shape
    return Level(
        cells=jnp.pad(grid.astype(jnp.uint8), MARGIN, constant_values=c.WALL),
        size=jnp.array([width, height], jnp.int32),
        agent_position=_as_int32(agent_position),
        agent_direction=_as_int32(agent_direction),
        task=_as_int32(task),
        target=_as_int32(target),
        max_steps=_as_int32(max_steps),
        noisy_ball=_as_int32(noisy_ball),
        seed=jnp.asarray(seed, jnp.uint32),
    )


def enlarge(level: Level, rows: int, columns: int) -> Level:
    """Pad the level with wall to an array of `rows` x `columns` cells.

    Raises:
        ValueError: the level does not fit.
    """
    have_rows, have_columns = level.cells.shape
    if have_rows > rows or have_columns > columns:
        raise ValueError(f"a level of {level.cells.shape} does not fit {(rows, columns)}")
    added = ((0, rows - have_rows), (0, columns - have_columns))
    return level._replace(cells=jnp.pad(level.cells, added, constant_values=c.WALL))


def _as_int32(value: Array | int) -> Int[Array, "..."]:
    return jnp.asarray(value, jnp.int32)
