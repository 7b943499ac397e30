"""What a generator is, and the two random choices that every generator makes."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt8

from envs.minigrid import cells as c
from envs.minigrid.level import TASKS, Level


class Generator(NamedTuple):
    """Draws the levels of one environment, with the distribution of MiniGrid's own code.

    `draw(key, count)` is a pure function: it returns levels with a leading axis `[count]`,
    and `Bool[count]`, False for a level that could not be made and must not be played.
    """

    name: str  # the name that the paper uses
    width: int  # of the grid, its outer wall included
    height: int
    max_steps: int
    task: int  # one of `level.TASKS`
    draw: Callable[[PRNGKeyArray, int], tuple[Level, Bool[Array, " count"]]]

    def __str__(self) -> str:
        task = TASKS[self.task]
        return f"{self.name}: {self.width}x{self.height}, {task} within {self.max_steps} steps"


DrawOne = Callable[[PRNGKeyArray], tuple[Level, Bool[Array, ""]]]


def one_by_one(
    name: str, width: int, height: int, max_steps: int, task: int, draw_one: DrawOne
) -> Generator:
    """Returns a generator whose levels are drawn apart from each other, all in the same time.

    Args:
        name: the name that the paper uses.
        width: of the grid, its outer wall included.
        height: likewise.
        max_steps: time limit in steps.
        task: one of `level.TASKS`.
        draw_one: a pure function from a key to one level, and whether that may be played.
    """

    def draw(key: PRNGKeyArray, count: int) -> tuple[Level, Bool[Array, " count"]]:
        return jax.vmap(draw_one)(jax.random.split(key, count))

    return Generator(name, width, height, max_steps, task, draw)


def choose(
    key: PRNGKeyArray, allowed: Bool[Array, "*shape"]
) -> tuple[tuple[Int[Array, ""], ...], Bool[Array, ""]]:
    """Picks one of the allowed places, each with the same chance.

    MiniGrid draws places until one is allowed, which has this very distribution.

    Returns:
        The index along each axis, and whether any place is allowed at all.
    """
    total = jnp.cumsum(allowed.reshape(-1), dtype=jnp.int32)
    wanted = jax.random.randint(key, (), 0, jnp.maximum(total[-1], 1))
    return jnp.unravel_index(jnp.argmax(total > wanted), allowed.shape), total[-1] > 0


def color_or_random(color: int | None, key: PRNGKeyArray) -> Int[Array, ""]:
    """Returns the colour that is asked for, or any if none is."""
    return random_color(key) if color is None else jnp.asarray(color, jnp.int32)


def random_color(key: PRNGKeyArray, shape: tuple[int, ...] = ()) -> Int[Array, "*shape"]:
    """Draws MiniGrid's six colours, each with the same chance."""
    return jax.random.randint(key, shape, 0, len(c.COLORS))


def coordinates(height: int, width: int) -> tuple[Int[Array, "1 width"], Int[Array, "height 1"]]:
    """Returns the x and the y of every cell of a grid, as a row and a column."""
    return jnp.arange(width)[None, :], jnp.arange(height)[:, None]


def empty_room(height: int, width: int) -> UInt8[Array, "height width"]:
    """Returns a grid with a wall around it and nothing inside."""
    x, y = coordinates(height, width)
    is_wall = (x == 0) | (x == width - 1) | (y == 0) | (y == height - 1)
    return jnp.where(is_wall, c.WALL, c.EMPTY).astype(jnp.uint8)


def put(
    cells: UInt8[Array, "height width"], position: Int[Array, "2"], value: Int[Array, ""] | int
) -> UInt8[Array, "height width"]:
    """Returns `cells` with the byte at `position` (x, y) replaced."""
    x, y = coordinates(*cells.shape)
    return jnp.where((x == position[0]) & (y == position[1]), value, cells).astype(jnp.uint8)
