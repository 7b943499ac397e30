"""LavaCrossing, SimpleCrossing and LavaGap: lava or walls between the agent and the goal.

Lava ends the episode even when the agent only explores: "states where it can die are still
terminal" (paper, section 3.2).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt8

from envs.minigrid import cells as c
from envs.minigrid.generators import generator as g
from envs.minigrid.level import REACH_GOAL, Level, make_level

MIN_SIZE = 5


def crossing(name: str, size: int, num_crossings: int, obstacle: int = c.LAVA) -> g.Generator:
    """Return LavaCrossing, or SimpleCrossing if the rivers are walls (`CrossingEnv`).

    Args:
        name: the environment's name.
        size: cells along a side of the grid, including the outer wall (odd, at least 5).
        num_crossings: number of rivers, each with one opening.
        obstacle: byte of the cells of a river.

    Raises:
        ValueError: the size is even or too small, or the rivers do not fit.
    """
    if size < MIN_SIZE or size % 2 == 0:
        raise ValueError(f"the size must be odd and at least {MIN_SIZE}, not {size}")
    max_rivers = 2 * len(range(2, size - 2, 2))
    if not 1 <= num_crossings <= max_rivers:
        raise ValueError(f"a grid of size {size} has 1 to {max_rivers} rivers, not {num_crossings}")
    max_steps = 4 * size**2

    def sample_level(key: PRNGKeyArray) -> g.SampledLevel:
        keys = jax.random.split(key, 3)
        places = jnp.arange(2, size - 2, 2)  # where a river may be, along either axis
        chosen = jax.random.permutation(keys[0], max_rivers) < num_crossings
        vertical, horizontal = jnp.split(chosen, 2)  # whether there is a river at each place
        grid = _rivers(size, places, vertical, horizontal, obstacle)
        goes_right = jnp.arange(num_crossings) < vertical.sum()  # across a vertical river
        path = jax.random.permutation(keys[1], goes_right)
        ends = [jnp.sort(jnp.where(chosen, places, size - 1)) for chosen in (vertical, horizontal)]
        ends = [jnp.pad(end, 1, constant_values=(0, size - 1)) for end in ends]  # the outer walls
        grid = _open_path(keys[2], grid, path, *ends)
        return _with_agent_and_goal(grid, max_steps), jnp.array(True)

    return g.make_generator(
        name, size, size, max_steps, REACH_GOAL, sample_level, deadly=obstacle == c.LAVA
    )


def gap(name: str, size: int) -> g.Generator:
    """Return LavaGap: one vertical strip of lava with one gap (MiniGrid's `LavaGapEnv`).

    Args:
        name: the environment's name.
        size: cells along a side of the grid, including the outer wall (at least 5).

    Raises:
        ValueError: the grid is too small.
    """
    if size < MIN_SIZE:
        raise ValueError(f"the size must be at least {MIN_SIZE}, not {size}")
    max_steps = 4 * size**2

    def sample_level(key: PRNGKeyArray) -> g.SampledLevel:
        key_x, key_y = jax.random.split(key)
        gap_x = jax.random.randint(key_x, (), 2, size - 2)
        gap_y = jax.random.randint(key_y, (), 1, size - 1)
        x, y = g.coordinates(size, size)
        strip = (x == gap_x) & (y > 0) & (y < size - 1)
        grid = jnp.where(strip & (y != gap_y), c.LAVA, g.empty_room(size, size))
        return _with_agent_and_goal(grid.astype(jnp.uint8), max_steps), jnp.array(True)

    return g.make_generator(name, size, size, max_steps, REACH_GOAL, sample_level, deadly=True)


def _rivers(
    size: int,
    places: Int[Array, " n"],
    vertical: Bool[Array, " n"],
    horizontal: Bool[Array, " n"],
    obstacle: int,
) -> UInt8[Array, "size size"]:
    x, y = g.coordinates(size, size)
    none = jnp.zeros(size, bool)
    river = none.at[places].set(vertical)[None, :] | none.at[places].set(horizontal)[:, None]
    inside = (x > 0) & (x < size - 1) & (y > 0) & (y < size - 1)
    return jnp.where(river & inside, obstacle, g.empty_room(size, size)).astype(jnp.uint8)


def _open_path(
    key: PRNGKeyArray,
    grid: UInt8[Array, "size size"],
    path: Bool[Array, " crossings"],
    ends_x: Int[Array, " m"],
    ends_y: Int[Array, " m"],
) -> UInt8[Array, "size size"]:
    """Open each river once, at a random cell next to the room that the path has reached."""
    room_x = room_y = jnp.int32(0)
    for goes_right, opening_key in zip(path, jax.random.split(key, len(path)), strict=True):
        key_x, key_y = jax.random.split(opening_key)
        right, below = ends_x[room_x + 1], ends_y[room_y + 1]
        inside_x = jax.random.randint(key_x, (), ends_x[room_x] + 1, right)
        inside_y = jax.random.randint(key_y, (), ends_y[room_y] + 1, below)
        x, y = jnp.where(goes_right, right, inside_x), jnp.where(goes_right, inside_y, below)
        grid = g.set_cell(grid, jnp.stack([x, y]), c.EMPTY)
        room_x, room_y = room_x + goes_right, room_y + ~goes_right
    return grid


def _with_agent_and_goal(grid: UInt8[Array, "size size"], max_steps: int) -> Level:
    """Place the agent in the upper left corner, facing right, and the goal in the lower right."""
    corner = len(grid) - 2
    grid = g.set_cell(grid, jnp.array([corner, corner]), c.GOAL)
    return make_level(grid, jnp.array([1, 1]), 0, task=REACH_GOAL, max_steps=max_steps)
