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


def random_color(key: PRNGKeyArray, shape: tuple[int, ...] = ()) -> Int[Array, "*shape"]:
    """Draws MiniGrid's six colours, each with the same chance."""
    return jax.random.randint(key, shape, 0, len(c.COLORS))


def coordinates(height: int, width: int) -> tuple[Int[Array, "1 width"], Int[Array, "height 1"]]:
    """Returns the x and the y of every cell of a grid, as a row and a column."""
    return jnp.arange(width)[None, :], jnp.arange(height)[:, None]


def put(
    cells: UInt8[Array, "height width"], position: Int[Array, "2"], value: Int[Array, ""] | int
) -> UInt8[Array, "height width"]:
    """Returns `cells` with the byte at `position` (x, y) replaced."""
    x, y = coordinates(*cells.shape)
    return jnp.where((x == position[0]) & (y == position[1]), value, cells).astype(jnp.uint8)
