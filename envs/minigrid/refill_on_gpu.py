"""Refilling a pool as a GPU does it fastest, with the same levels as `pool.refill`.

The host has to wait for a GPU wherever the length of a loop depends on numbers. So levels that are
sampled independently are made at once, as many as a ring holds, and stored while there is room.
Generators with unfinished levels share one loop.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key, PRNGKeyArray

from envs.minigrid.generators import Generator
from envs.minigrid.pool import Pool, add

LEVELS_AT_ONCE = 4096  # of one seed


class _Progress(NamedTuple):
    """Where the loop is."""

    pool: Pool
    calls: Int[Array, " generators"]  # of each generator, that are over
    parts: Int[Array, " generators"]  # of the next call, that are done


def refill(pool: Pool, key: PRNGKeyArray, generators: Sequence[Generator], count: int) -> Pool:
    """Refill the rings with the levels with which `pool.refill` refills them.

    Args:
        pool: the pool to refill.
        key: random key of the levels.
        generators: one for each environment.
        count: levels requested from a generator in one call.
    """
    keys = jax.random.split(key, len(generators))
    drafting = [bool(jax.tree.leaves(drafts)) for drafts in pool.drafts]
    for index, generator in enumerate(generators):
        if not drafting[index]:
            pool = _fill_at_once(pool, index, keys[index], generator, count)
    indices = [index for index, drafts in enumerate(drafting) if drafts]
    return _fill_in_turns(pool, indices, keys, generators, count) if indices else pool


def _fill_at_once(
    pool: Pool, index: int, key: PRNGKeyArray, generator: Generator, count: int
) -> Pool:
    """Refill the ring of a generator whose calls are independent."""

    def call(number: Array) -> Any:
        return generator.advance((), jax.random.fold_in(key, number), count)[1:]

    calls = jnp.arange(_max_calls(pool, count))
    levels, ready = jax.lax.map(call, calls, batch_size=max(LEVELS_AT_ONCE // count, 1))
    added = ready.sum(axis=1, dtype=jnp.int32)
    before = jnp.cumsum(added) - added  # levels of earlier calls
    kept = ready & _has_room(pool, index, before, count)[:, None]
    levels, kept = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (levels, kept))
    return add(pool, index, levels, kept)


def _fill_in_turns(
    pool: Pool,
    indices: Sequence[int],
    keys: Key[Array, " generators"],
    generators: Sequence[Generator],
    count: int,
) -> Pool:
    """Refill the rings of generators whose drafts pass from call to call, in one loop.

    Args:
        pool: the pool to refill.
        indices: of these generators.
        keys: of all rings.
        generators: all of them.
        count: levels requested from a generator in one call.
    """
    rings = jnp.asarray(indices)
    max_calls = _max_calls(pool, count)

    def unfinished(progress: _Progress) -> Bool[Array, " generators"]:
        return _has_room(progress.pool, rings, 0, count) & (progress.calls < max_calls)

    def turn(progress: _Progress) -> _Progress:
        pool, all_parts = progress.pool, []
        active = unfinished(progress)
        for position, index in enumerate(indices):
            key, here = keys[index], active[position]
            key_now = jax.random.fold_in(key, progress.calls[position])
            drafts, levels, ready, parts = _advance_part(
                generators[index], pool.drafts[index], key_now, count, progress.parts[position]
            )
            drafts = jax.tree.map(
                lambda new, old, here=here: jnp.where(here, new, old), drafts, pool.drafts[index]
            )
            drafts = (*pool.drafts[:index], drafts, *pool.drafts[index + 1 :])
            pool = add(pool._replace(drafts=drafts), index, levels, ready & here)
            all_parts.append(parts)
        parts = jnp.stack(all_parts)
        return _Progress(pool, progress.calls + (active & (parts == 0)), parts)

    nothing = jnp.zeros(len(indices), jnp.int32)
    start = _Progress(pool, nothing, nothing)
    return jax.lax.while_loop(lambda now: unfinished(now).any(), turn, start).pool


def _advance_part(
    generator: Generator, drafts: Any, key: PRNGKeyArray, count: int, parts: Int[Array, ""]
) -> Any:
    if generator.advance_part:
        return generator.advance_part(drafts, key, count, parts)
    return *generator.advance(drafts, key, count), jnp.zeros_like(parts)


def _has_room(
    pool: Pool, rings: int | Int[Array, " rings"], more: int | Int[Array, "..."], count: int
) -> Bool[Array, "..."]:
    """Return whether `count` levels fit into rings after `more` that they do not have yet."""
    slots = pool.levels.task.shape[1]
    has_room: Array = pool.made[rings] + more + count - pool.taken[rings] <= slots
    return has_room


def _max_calls(pool: Pool, count: int) -> int:
    """Return how often a generator is called at most."""
    return -(-pool.levels.task.shape[1] // count)
