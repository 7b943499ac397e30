"""The `Generator` record, sampling levels from it, and the random choices that generators share."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt8, UInt32

from envs.minigrid import cells as c
from envs.minigrid.level import MARGIN, NO_TASK, TASKS, Level, enlarge, make_level

MAX_CALLS = 1000  # calls of `Generator.advance` per batch of levels


class Generator(NamedTuple):
    """Samples the levels of one environment, with the distribution of MiniGrid's own code.

    Levels are sampled in batches. Each call of `advance` does bounded work; unfinished levels
    continue in the next call, so a slow one never delays the others.
    """

    name: str  # its name in settings and tables
    width: int  # cells of the grid along x, including the outer wall
    height: int
    max_steps: int
    task: int  # index into `level.TASKS`
    begin: Callable[[int], Any]  # count -> empty drafts of `count` levels
    # (drafts, key, count) -> drafts, levels `[count, ...]`, and the mask of those ready to play
    advance: Callable[[Any, PRNGKeyArray, int], tuple[Any, Level, Bool[Array, " count"]]]
    deadly: bool = False  # whether there is lava, which can end an episode at any time

    def __str__(self) -> str:
        task = TASKS[self.task]
        return f"{self.name}: {self.width}x{self.height}, {task} within {self.max_steps} steps"


SampledLevel = tuple[Level, Bool[Array, ""]]  # a level, and whether it may be played
SampleLevel = Callable[[PRNGKeyArray], SampledLevel]


def make_generator(
    name: str,
    width: int,
    height: int,
    max_steps: int,
    task: int,
    sample_level: SampleLevel,
    *,
    deadly: bool = False,
) -> Generator:
    """Return a generator that samples each level independently.

    Args:
        name: its name in settings and tables.
        width: cells of the grid along x, including the outer wall.
        height: cells of the grid along y, including the outer wall.
        max_steps: time limit in steps.
        task: index into `level.TASKS`.
        sample_level: pure function from a random key to a level, and whether it may be played.
        deadly: whether levels contain lava.
    """

    def advance(
        drafts: tuple[()], key: PRNGKeyArray, count: int
    ) -> tuple[tuple[()], Level, Bool[Array, " count"]]:
        levels, ready = jax.vmap(sample_level)(jax.random.split(key, count))
        return drafts, levels, ready

    return Generator(name, width, height, max_steps, task, lambda _: (), advance, deadly)


class _Sampling(NamedTuple):
    key: PRNGKeyArray
    drafts: Any
    levels: Level  # [count, ...]; the first `done` are finished
    done: Int[Array, ""]
    calls: Int[Array, ""]


def sample_levels(
    generator: Generator, key: PRNGKeyArray, count: int
) -> tuple[Level, Bool[Array, " count"]]:
    """Sample `count` independent levels.

    Returns:
        Levels `[count, ...]`, and the mask of those finished within `MAX_CALLS` calls of the
        generator. The others are `placeholder_level`.
    """
    shape = generator.height + 2 * MARGIN, generator.width + 2 * MARGIN

    def unfinished(sampling: _Sampling) -> Bool[Array, ""]:
        return (sampling.done < count) & (sampling.calls < MAX_CALLS)

    def advance(sampling: _Sampling) -> _Sampling:
        key, key_now = jax.random.split(sampling.key)
        drafts, levels, ready = generator.advance(sampling.drafts, key_now, count)
        levels = jax.vmap(lambda level: enlarge(level, *shape))(levels)
        index = jnp.where(ready, sampling.done + jnp.cumsum(ready) - 1, count)
        levels = jax.tree.map(
            lambda all_, new: all_.at[index].set(new, mode="drop"), sampling.levels, levels
        )
        done = jnp.minimum(sampling.done + ready.sum(dtype=jnp.int32), count)
        return _Sampling(key, drafts, levels, done, sampling.calls + 1)

    blank = placeholder_level(*shape)
    levels = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), blank)
    start = _Sampling(key, generator.begin(count), levels, jnp.int32(0), jnp.int32(0))
    end = jax.lax.while_loop(unfinished, advance, start)
    return end.levels, jnp.arange(count) < end.done


def placeholder_level(rows: int, columns: int) -> Level:
    """Return the level that replaces a failed one: one walled cell and one step."""
    level = make_level(empty_room(3, 3), jnp.array([1, 1]), 0, task=NO_TASK, max_steps=1)
    return enlarge(level, rows, columns)


class Seed(NamedTuple):
    """A key for one random number, and the two words that `jax.random.randint` draws from it."""

    key: PRNGKeyArray
    words: UInt32[Array, "2"]


def split(key: PRNGKeyArray, count: int) -> list[Seed]:
    """Split a key. Drawing all words at once halves the time to compile."""
    keys = jax.random.split(key, count)
    # A seed's user takes its key or its words, never both: the key may be copied.
    words = jax.vmap(lambda key: _words(key, ()))(jax.random.clone(keys))
    return [Seed(keys[index], words[index]) for index in range(count)]


def randint(seed: Seed, low: Array | int, high: Array | int) -> Int[Array, ""]:
    """Return `jax.random.randint(seed.key, (), low, high)`."""
    return _between(seed.words, low, high)


def randints(key: PRNGKeyArray, shape: tuple[int, ...], low: int, high: int) -> Int[Array, "..."]:
    """Return `jax.random.randint(key, shape, low, high)`."""
    return _between(_words(key, shape), low, high)


def _words(key: PRNGKeyArray, shape: tuple[int, ...]) -> UInt32[Array, "2 *shape"]:
    return jax.vmap(lambda key: jax.random.bits(key, shape))(jax.random.split(key))


def _between(
    words: UInt32[Array, "2 *shape"], low: Array | int, high: Array | int
) -> Int[Array, "*shape"]:
    """Return `low` plus the 64-bit number of the two words modulo `high - low`."""
    low = jnp.asarray(low, jnp.int32)
    span = jnp.maximum(high - low, 1).astype(jnp.uint32)
    word = jnp.uint32(1 << 16) % span
    remainder = words[0] % span * (word * word % span) + words[1] % span
    return low + (remainder % span).astype(jnp.int32)


def choose(
    seed: Seed, allowed: Bool[Array, "*shape"]
) -> tuple[tuple[Int[Array, ""], ...], Bool[Array, ""]]:
    """Choose one of the allowed indices, all with the same probability.

    MiniGrid samples positions until one is allowed, which has the same distribution.

    Returns:
        The index along each axis, and whether any index is allowed at all.
    """
    total = jnp.cumsum(allowed.reshape(-1), dtype=jnp.int32)
    wanted = randint(seed, 0, total[-1])
    return jnp.unravel_index(jnp.argmax(total > wanted), allowed.shape), total[-1] > 0


def random_color(seed: Seed) -> Int[Array, ""]:
    """Return one of MiniGrid's six colours, all with the same probability."""
    return randint(seed, 0, len(c.COLORS))


def coordinates(height: int, width: int) -> tuple[Int[Array, "1 width"], Int[Array, "height 1"]]:
    """Return the x and the y of every cell of a grid, as a row and a column."""
    return jnp.arange(width)[None, :], jnp.arange(height)[:, None]


def empty_room(height: int, width: int) -> UInt8[Array, "height width"]:
    """Return an empty grid with a wall around it."""
    x, y = coordinates(height, width)
    is_wall = (x == 0) | (x == width - 1) | (y == 0) | (y == height - 1)
    return jnp.where(is_wall, c.WALL, c.EMPTY).astype(jnp.uint8)


def set_cell(
    cells: UInt8[Array, "height width"], position: Int[Array, "2"], value: Int[Array, ""] | int
) -> UInt8[Array, "height width"]:
    """Return `cells` with the byte at `position` (x, y) replaced."""
    x, y = coordinates(*cells.shape)
    return jnp.where((x == position[0]) & (y == position[1]), value, cells).astype(jnp.uint8)
