"""Levels made ahead: a ring of fresh levels for each environment.

A reset takes the next level of its environment, which costs a copy. The rings are topped up
in bulk, between rollouts; a generator's unfinished drafts stay until the next time. Should a ring
run dry, an old level is played again and counted.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from envs.minigrid.generators import PATIENCE, Generator, no_level
from envs.minigrid.level import MARGIN, Level, enlarge


class Pool(NamedTuple):
    """Levels of `E` environments, and what became of them since the beginning."""

    levels: Level  # arrays [E, places, ...]
    drafts: tuple[Any, ...]  # of each environment's generator
    made: Int[Array, " E"]  # levels
    taken: Int[Array, " E"]  # of those, by worlds that play them for the first time
    replayed: Int[Array, " E"]  # levels taken when no fresh one waited


def make_pool(
    key: PRNGKeyArray, generators: Sequence[Generator], capacity: int, count: int
) -> Pool:
    """Returns a full pool; all levels lie on one canvas, as large as the largest needs.

    A ring stays short of levels only if its generator does not make them with `PATIENCE`. Where
    one has none at all, a walled cell stands in for a level (`no_level`), and counts as replayed.

    Args:
        key: draws the levels.
        generators: of the environments.
        capacity: levels that wait of each, at least, when the pool is full.
        count: levels asked for at once of a generator.
    """
    shape = len(generators), capacity + count - 1  # with one level less, a batch finds room
    nothing = jnp.zeros(len(generators), jnp.int32)
    pool = Pool(
        levels=jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (*shape, *leaf.shape)),
            no_level(*canvas(generators)),
        ),
        drafts=tuple(generator.begin(count) for generator in generators),
        made=nothing,
        taken=nothing,
        replayed=nothing,
    )
    return _fill(pool, key, generators, count, PATIENCE)


def canvas(generators: Sequence[Generator]) -> tuple[int, int]:
    """Returns the rows and columns that hold any level of `generators`, margins included."""
    rows = max(generator.height for generator in generators) + 2 * MARGIN
    return rows, max(generator.width for generator in generators) + 2 * MARGIN


def take(
    pool: Pool, environment: Int[Array, " N"], wanted: Bool[Array, " N"]
) -> tuple[Pool, Level]:
    """Takes the next level of `environment` for each world that wants one.

    Returns:
        The pool, and levels with a leading axis `[N]`; where none was wanted, any level.
    """
    number, places = pool.levels.task.shape
    wishes = (environment[:, None] == jnp.arange(number)) & wanted[:, None]  # [N, E]
    turn = jnp.cumsum(wishes, axis=0) - 1  # each gets its own
    old = pool.taken + turn - pool.made  # at least 0 where there is no fresh one
    position = pool.taken + turn + jnp.where(old >= 0, pool.replayed, 0)
    slot = position % jnp.clip(pool.made, 1, places)
    mine = jnp.take_along_axis(slot, environment[:, None], axis=1)[:, 0]
    levels = jax.tree.map(lambda leaf: leaf[environment, mine], pool.levels)
    replayed = (wishes & (old >= 0)).sum(axis=0, dtype=jnp.int32)
    taken = wishes.sum(axis=0, dtype=jnp.int32) - replayed
    return pool._replace(taken=pool.taken + taken, replayed=pool.replayed + replayed), levels


def shares_replayed(pool: Pool) -> tuple[Float[Array, ""], Float[Array, " E"]]:
    """Returns the share of levels taken that were no fresh ones: of all, of each environment's."""
    total = pool.taken + pool.replayed
    return (
        pool.replayed.sum() / jnp.maximum(total.sum(), 1),
        pool.replayed / jnp.maximum(total, 1),
    )


def top_up(pool: Pool, key: PRNGKeyArray, generators: Sequence[Generator], count: int) -> Pool:
    """Fills the rings with fresh levels, `count` at a time, for as long as so many find room.

    The work is bounded: no generator is asked more often than it takes to fill a ring.
    """
    return _fill(pool, key, generators, count, patience=1)


def _fill(
    pool: Pool, key: PRNGKeyArray, generators: Sequence[Generator], count: int, patience: int
) -> Pool:
    keys = jax.random.split(key, len(generators))
    for index, (generator, ring_key) in enumerate(zip(generators, keys, strict=True)):
        pool = _fill_ring(pool, index, ring_key, generator, count, patience)
    return pool


def _fill_ring(
    pool: Pool, index: int, key: PRNGKeyArray, generator: Generator, count: int, patience: int
) -> Pool:
    places = pool.levels.task.shape[1]
    most_calls = patience * -(-places // count)

    def has_room(carry: tuple[Pool, Int[Array, ""]]) -> Bool[Array, ""]:
        pool, calls = carry
        has_room: Array = pool.made[index] + count - pool.taken[index] <= places
        return has_room & (calls < most_calls)

    def add(carry: tuple[Pool, Int[Array, ""]]) -> tuple[Pool, Int[Array, ""]]:
        pool, calls = carry
        key_now = jax.random.fold_in(key, calls)
        drafts, levels, ready = generator.advance(pool.drafts[index], key_now, count)
        drafts = (*pool.drafts[:index], drafts, *pool.drafts[index + 1 :])
        return _add(pool._replace(drafts=drafts), index, levels, ready), calls + 1

    return jax.lax.while_loop(has_room, add, (pool, jnp.int32(0)))[0]


def _add(pool: Pool, index: int, levels: Level, ready: Bool[Array, " count"]) -> Pool:
    """Stores the levels that are ready behind those that ring `index` holds."""
    places, rows, columns = pool.levels.cells.shape[1:]
    levels = jax.vmap(lambda level: enlarge(level, rows, columns))(levels)
    behind = pool.made[index] + jnp.cumsum(ready) - 1
    place = jnp.where(ready, behind % places, places)  # out of range: dropped
    stored = jax.tree.map(
        lambda ring, fresh: ring.at[index, place].set(fresh, mode="drop"), pool.levels, levels
    )
    made = pool.made.at[index].add(ready.sum(dtype=jnp.int32))
    return pool._replace(levels=stored, made=made)
