"""A pool of levels sampled in advance: one ring buffer per environment.

A reset copies the next level from its environment's ring. Rings are refilled in bulk between
rollouts; unfinished drafts wait for the next refill. A ring without fresh levels replays old ones,
and counts them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from envs.minigrid.generators import MAX_CALLS, Generator, placeholder_level
from envs.minigrid.level import MARGIN, Level, enlarge


class Pool(NamedTuple):
    """Levels of `E` environments, and counts since the pool was made."""

    levels: Level  # arrays [E, slots, ...]
    drafts: tuple[Any, ...]  # unfinished levels of each environment's generator
    made: Int[Array, " E"]  # levels stored
    taken: Int[Array, " E"]  # fresh levels handed to worlds
    replayed: Int[Array, " E"]  # old levels handed to worlds for lack of fresh ones


def make_pool(
    key: PRNGKeyArray, generators: Sequence[Generator], capacity: int, count: int
) -> Pool:
    """Return a full pool. All levels have the array size of the largest environment.

    A ring stays incomplete only if its generator needs more than `MAX_CALLS` calls per batch. With
    an empty ring, worlds play `placeholder_level`, which counts as replayed.

    Args:
        key: random key of the levels.
        generators: one generator per environment.
        capacity: minimum of fresh levels per environment in a full pool.
        count: levels requested per call of a generator.
    """
    shape = len(generators), capacity + count - 1  # so a batch fits once a level is missing
    nothing = jnp.zeros(len(generators), jnp.int32)
    pool = Pool(
        levels=jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (*shape, *leaf.shape)),
            placeholder_level(*canvas(generators)),
        ),
        drafts=tuple(generator.begin(count) for generator in generators),
        made=nothing,
        taken=nothing,
        replayed=nothing,
    )
    return _fill(pool, key, generators, count, MAX_CALLS)


def pool_of(levels: Level) -> Pool:
    """Return a pool of one environment whose levels `[N]` were all handed out once."""
    count = jnp.full(1, len(levels.task), jnp.int32)
    rings = jax.tree.map(lambda leaf: leaf[None], levels)
    return Pool(rings, drafts=((),), made=count, taken=count, replayed=jnp.zeros_like(count))


def canvas(generators: Sequence[Generator]) -> tuple[int, int]:
    """Return the rows and columns that fit any level of `generators`, including margins."""
    rows = max(generator.height for generator in generators) + 2 * MARGIN
    return rows, max(generator.width for generator in generators) + 2 * MARGIN


def take(
    pool: Pool, environment: Int[Array, " N"], wanted: Bool[Array, " N"]
) -> tuple[Pool, Level]:
    """Take the next level of `environment` for each world that wants one.

    Args:
        pool: the pool.
        environment: each world's environment.
        wanted: worlds that want a level.

    Returns:
        The pool, and levels `[N, ...]`, arbitrary for worlds that want none.
    """
    num_environments, slots = pool.levels.task.shape
    requests = (environment[:, None] == jnp.arange(num_environments)) & wanted[:, None]  # [N, E]
    rank = jnp.cumsum(requests, axis=0) - 1  # rank of each world at its ring
    missing = pool.taken + rank - pool.made  # at least 0 if no fresh level is left
    position = pool.taken + rank + jnp.where(missing >= 0, pool.replayed, 0)
    slot = position % jnp.clip(pool.made, 1, slots)
    own_slot = jnp.take_along_axis(slot, environment[:, None], axis=1)[:, 0]
    levels = jax.tree.map(lambda leaf: leaf[environment, own_slot], pool.levels)
    replayed = (requests & (missing >= 0)).sum(axis=0, dtype=jnp.int32)
    taken = requests.sum(axis=0, dtype=jnp.int32) - replayed
    return pool._replace(taken=pool.taken + taken, replayed=pool.replayed + replayed), levels


def replayed_shares(pool: Pool) -> tuple[Float[Array, ""], Float[Array, " E"]]:
    """Return the share of handed-out levels that were replayed: overall, and per environment."""
    total = pool.taken + pool.replayed
    return (
        pool.replayed.sum() / jnp.maximum(total.sum(), 1),
        pool.replayed / jnp.maximum(total, 1),
    )


def refill(pool: Pool, key: PRNGKeyArray, generators: Sequence[Generator], count: int) -> Pool:
    """Refill the rings with fresh levels, `count` at a time, while a whole batch fits.

    The work is bounded: a generator is called at most as often as an empty ring would need.

    Args:
        pool: the pool to refill.
        key: random key of the levels.
        generators: one generator per environment.
        count: levels requested per call of a generator.
    """
    return _fill(pool, key, generators, count, calls_per_batch=1)


def _fill(
    pool: Pool, key: PRNGKeyArray, generators: Sequence[Generator], count: int, calls_per_batch: int
) -> Pool:
    keys = jax.random.split(key, len(generators))
    for index, (generator, ring_key) in enumerate(zip(generators, keys, strict=True)):
        pool = _fill_ring(pool, index, ring_key, generator, count, calls_per_batch)
    return pool


def _fill_ring(
    pool: Pool,
    index: int,
    key: PRNGKeyArray,
    generator: Generator,
    count: int,
    calls_per_batch: int,
) -> Pool:
    slots = pool.levels.task.shape[1]
    max_calls = calls_per_batch * -(-slots // count)

    def has_room(carry: tuple[Pool, Int[Array, ""]]) -> Bool[Array, ""]:
        pool, calls = carry
        has_room: Array = pool.made[index] + count - pool.taken[index] <= slots
        return has_room & (calls < max_calls)

    def call(carry: tuple[Pool, Int[Array, ""]]) -> tuple[Pool, Int[Array, ""]]:
        pool, calls = carry
        key_now = jax.random.fold_in(key, calls)
        drafts, levels, ready = generator.advance(pool.drafts[index], key_now, count)
        drafts = (*pool.drafts[:index], drafts, *pool.drafts[index + 1 :])
        return add(pool._replace(drafts=drafts), index, levels, ready), calls + 1

    return jax.lax.while_loop(has_room, call, (pool, jnp.int32(0)))[0]


def add(pool: Pool, index: int, levels: Level, ready: Bool[Array, " count"]) -> Pool:
    """Append the ready levels to ring `index`."""
    slots, rows, columns = pool.levels.cells.shape[1:]
    levels = jax.vmap(lambda level: enlarge(level, rows, columns))(levels)
    next_slots = pool.made[index] + jnp.cumsum(ready) - 1
    slot = jnp.where(ready, next_slots % slots, slots)  # out of range: dropped
    stored = jax.tree.map(
        lambda ring, fresh: ring.at[index, slot].set(fresh, mode="drop"), pool.levels, levels
    )
    return pool._replace(levels=stored, made=pool.made.at[index].add(ready.sum(dtype=jnp.int32)))
