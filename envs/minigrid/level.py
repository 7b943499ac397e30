"""A level as a value: the grid, the agent, the task and the time limit, all arrays.

Because everything that tells one environment from another stands in the level, one
compiled step plays them all. Positions are MiniGrid's `(x, y)`, x to the right, y down.
Directions are MiniGrid's: 0 right, 1 down, 2 left, 3 up.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, UInt8, UInt32

from envs.minigrid import cells as c

# Cells of wall kept around every grid, so that a view never leaves the array: the agent
# stands inside the outer wall (x >= 1) and sees 6 cells ahead (x - 6 >= -5).
MARGIN = 5

# Tasks.
NO_TASK, REACH_GOAL, OPEN_DOOR, PICK_UP = range(4)
TASKS = ("none", "reach the goal", "open the door", "pick up the object")

DIRECTIONS = ((1, 0), (0, 1), (-1, 0), (0, -1))


class Level(NamedTuple):
    """One world at its first moment."""

    cells: UInt8[Array, "rows columns"]  # the grid with MARGIN cells of wall on each side
    size: Int[Array, "2"]  # (width, height) of the grid, as MiniGrid counts it
    agent_position: Int[Array, "2"]  # (x, y)
    agent_direction: Int[Array, ""]  # 0..3
    task: Int[Array, ""]  # REACH_GOAL, OPEN_DOOR, PICK_UP or NO_TASK
    target: Int[Array, ""]  # PICK_UP: the byte of the object; OPEN_DOOR: `place(x, y)` of the door
    max_steps: Int[Array, ""]  # the episode's time limit
    noisy_ball: Int[Array, ""]  # `place(x, y)` of a ball that DROP recolours at random, 0 if none
    seed: UInt32[Array, ""]  # of those colours: the only chance left once a level is drawn


def place(x: Int[Array, ""] | int, y: Int[Array, ""] | int) -> Int[Array, ""] | int:
    """Returns a position as one integer, the same on an array of any size."""
    return y << 8 | x


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
    """Builds a level from a grid of cells.

    Args:
        grid: one byte a cell, row by row (`grid[y, x]`), its outer wall included.
        agent_position: (x, y).
        agent_direction: 0 right, 1 down, 2 left, 3 up.
        task: one of the tasks above.
        target: for PICK_UP, the byte of the object to pick up; for OPEN_DOOR, the door's
            `place(x, y)`; not used otherwise.
        max_steps: time limit in steps.
        noisy_ball: `place(x, y)` of the ball that DROP recolours (MultiRoomNoisyTV), 0 if none.
        seed: of the ball's colours.
    """
    height, width = grid.shape
    as_int = lambda value: jnp.asarray(value, jnp.int32)  # noqa: E731
    return Level(
        cells=jnp.pad(grid.astype(jnp.uint8), MARGIN, constant_values=c.WALL),
        size=jnp.array([width, height], jnp.int32),
        agent_position=as_int(agent_position),
        agent_direction=as_int(agent_direction),
        task=as_int(task),
        target=as_int(target),
        max_steps=as_int(max_steps),
        noisy_ball=as_int(noisy_ball),
        seed=jnp.asarray(seed, jnp.uint32),
    )


def enlarge(level: Level, rows: int, columns: int) -> Level:
    """Returns the level on an array of `rows` x `columns` bytes; what is added is wall.

    Raises:
        ValueError: the level does not fit.
    """
    have_rows, have_columns = level.cells.shape
    if have_rows > rows or have_columns > columns:
        raise ValueError(f"a level of {level.cells.shape} does not fit {(rows, columns)}")
    added = ((0, rows - have_rows), (0, columns - have_columns))
    return level._replace(cells=jnp.pad(level.cells, added, constant_values=c.WALL))
