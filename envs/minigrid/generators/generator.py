"""What a generator is, how levels are drawn from one, and the random choices they all make."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt8

from envs.minigrid import cells as c
from envs.minigrid.level import MARGIN, NO_TASK, TASKS, Level, enlarge, make_level

PATIENCE = 1000  # how often a generator is asked for what it could give at once


class Generator(NamedTuple):
    """Draws the levels of one environment, with the distribution of MiniGrid's own code.

    Levels are drawn in bulk, and what is not ready is gone on with at the next call. So that
    the slowest draw never holds up the others, a call does a bounded amount of work.
    """

    name: str  # the name that the paper uses
    width: int  # of the grid, its outer wall included
    height: int
    max_steps: int
    task: int  # one of `level.TASKS`
    begin: Callable[[int], Any]  # count -> drafts for `count` levels, nothing drawn yet
    advance: Callable[[Any, PRNGKeyArray, int], tuple[Any, Level, Bool[Array, " count"]]]
    # (drafts, key, count) -> drafts; levels with a leading axis `[count]`; which of them are
    # ready. Those are handed out; the others must not be played
    deadly: bool = False  # there is lava, which ends an episode at any time

    def __str__(self) -> str:
        task = TASKS[self.task]
        return f"{self.name}: {self.width}x{self.height}, {task} within {self.max_steps} steps"


DrawOne = Callable[[PRNGKeyArray], tuple[Level, Bool[Array, ""]]]


def one_by_one(
    name: str,
    width: int,
    height: int,
    max_steps: int,
    task: int,
    draw_one: DrawOne,
    *,
    deadly: bool = False,
) -> Generator:
    """Returns a generator whose levels are drawn apart from each other, all in the same time.

    Args:
        name: the name that the paper uses.
        width: of the grid, its outer wall included.
        height: likewise.
        max_steps: time limit in steps.
        task: one of `level.TASKS`.
        draw_one: a pure function from a key to one level, and whether that may be played.
        deadly: there is lava in the levels.
    """

    def begin(count: int) -> tuple[()]:
        del count
        return ()

    def advance(
        drafts: tuple[()], key: PRNGKeyArray, count: int
    ) -> tuple[tuple[()], Level, Bool[Array, " count"]]:
        levels, ready = jax.vmap(draw_one)(jax.random.split(key, count))
        return drafts, levels, ready

    return Generator(name, width, height, max_steps, task, begin, advance, deadly)


class _Drawing(NamedTuple):
    key: PRNGKeyArray
    drafts: Any
    levels: Level  # [count], of which the first `done` are drawn
    done: Int[Array, ""]
    calls: Int[Array, ""]


def draw(
    generator: Generator, key: PRNGKeyArray, count: int
) -> tuple[Level, Bool[Array, " count"]]:
    """Draws `count` levels, each by itself with the generator's distribution.

    Returns:
        Levels with a leading axis `[count]`, and which of them could be drawn with `PATIENCE`.
        In place of each other one stands `no_level`.
    """

    def unfinished(drawing: _Drawing) -> Bool[Array, ""]:
        return (drawing.done < count) & (drawing.calls < PATIENCE)

    def go_on(drawing: _Drawing) -> _Drawing:
        key, key_now = jax.random.split(drawing.key)
        drafts, levels, ready = generator.advance(drawing.drafts, key_now, count)
        place = jnp.where(ready, drawing.done + jnp.cumsum(ready) - 1, count)
        levels = jax.tree.map(
            lambda all_, new: all_.at[place].set(new, mode="drop"), drawing.levels, levels
        )
        done = jnp.minimum(drawing.done + ready.sum(dtype=jnp.int32), count)
        return _Drawing(key, drafts, levels, done, drawing.calls + 1)

    blank = no_level(generator.height + 2 * MARGIN, generator.width + 2 * MARGIN)
    levels = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), blank)
    start = _Drawing(key, generator.begin(count), levels, jnp.int32(0), jnp.int32(0))
    drawn = jax.lax.while_loop(unfinished, go_on, start)
    return drawn.levels, jnp.arange(count) < drawn.done


def no_level(rows: int, columns: int) -> Level:
    """Returns what is played where no level can be had: a walled cell, left after one step."""
    cell = empty_room(3, 3)
    level = make_level(cell, jnp.array([1, 1]), 0, task=NO_TASK, max_steps=1)
    return enlarge(level, rows, columns)


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
