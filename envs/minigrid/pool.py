"""Levels made ahead: a ring of fresh levels for each environment.

A reset takes the next level of its environment, which costs a copy. The rings are topped up
in bulk, between rollouts. Should a ring run dry, an old level is played again and counted.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from envs.minigrid.generators import Generator, draw
from envs.minigrid.level import MARGIN, Level, enlarge


class Pool(NamedTuple):
    """Levels of `E` environments, and how many were ever taken and made of each."""

    levels: Level  # arrays [E, capacity, ...]
    taken: Int[Array, " E"]
    made: Int[Array, " E"]
    replayed: Int[Array, ""]  # levels taken that had been played before


def make_pool(key: PRNGKeyArray, generators: Sequence[Generator], capacity: int) -> Pool:
    """Returns a full pool; all levels lie on one canvas, as large as the largest needs."""
    keys = jax.random.split(key, len(generators))
    rows, columns = canvas(generators)
    drawn = [
        _draw_on(rows, columns, generator, key, capacity)
        for generator, key in zip(generators, keys, strict=True)
    ]
    ordered = [_valid_first(levels, valid) for levels, valid in drawn]
    return Pool(
        levels=jax.tree.map(lambda *leaves: jnp.stack(leaves), *ordered),
        taken=jnp.zeros(len(generators), jnp.int32),
        made=jnp.stack([valid.sum(dtype=jnp.int32) for _, valid in drawn]),
        replayed=jnp.zeros((), jnp.int32),
    )


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
    number = pool.taken.shape[0]
    wishes = (environment[:, None] == jnp.arange(number)) & wanted[:, None]  # [N, E]
    turn = jnp.cumsum(wishes, axis=0) - 1  # each gets its own
    position = pool.taken + turn
    mine = jnp.take_along_axis(position, environment[:, None], axis=1)[:, 0]
    capacity = pool.levels.task.shape[1]
    levels = jax.tree.map(lambda leaf: leaf[environment, mine % capacity], pool.levels)
    replayed = pool.replayed + (wishes & (position >= pool.made)).sum(dtype=jnp.int32)
    taken = pool.taken + wishes.sum(axis=0, dtype=jnp.int32)
    return pool._replace(taken=taken, replayed=replayed), levels


def top_up(pool: Pool, key: PRNGKeyArray, generators: Sequence[Generator], count: int) -> Pool:
    """Fills the rings with fresh levels, `count` at a time, for as long as so many find room."""
    keys = jax.random.split(key, len(generators))
    for index, (generator, ring_key) in enumerate(zip(generators, keys, strict=True)):
        made = jnp.maximum(pool.made[index], pool.taken[index])  # a ring that ran dry starts anew
        pool = pool._replace(made=pool.made.at[index].set(made))
        pool = _fill(pool, index, ring_key, generator, count)
    return pool


def _fill(pool: Pool, index: int, key: PRNGKeyArray, generator: Generator, count: int) -> Pool:
    capacity = pool.levels.task.shape[1]
    most_rounds = capacity // count  # a generator whose draws are not valid must not hold us up

    def has_room(carry: tuple[Pool, PRNGKeyArray, Int[Array, ""]]) -> Bool[Array, ""]:
        pool, _, rounds = carry
        has_room: Array = pool.made[index] + count - pool.taken[index] <= capacity
        return has_room & (rounds < most_rounds)

    def add(
        carry: tuple[Pool, PRNGKeyArray, Int[Array, ""]],
    ) -> tuple[Pool, PRNGKeyArray, Int[Array, ""]]:
        pool, key, rounds = carry
        key, draw_key = jax.random.split(key)
        rows, columns = pool.levels.cells.shape[-2:]
        levels, valid = _draw_on(rows, columns, generator, draw_key, count)
        return _add(pool, index, levels, valid), key, rounds + 1

    pool, _, _ = jax.lax.while_loop(has_room, add, (pool, key, jnp.int32(0)))
    return pool


def _add(pool: Pool, index: int, levels: Level, valid: Bool[Array, " count"]) -> Pool:
    """Stores the valid levels behind those that ring `index` holds."""
    capacity = pool.levels.task.shape[1]
    behind = pool.made[index] + jnp.cumsum(valid) - 1
    place = jnp.where(valid, behind % capacity, capacity)  # out of range: dropped
    stored = jax.tree.map(
        lambda ring, fresh: ring.at[index, place].set(fresh, mode="drop"), pool.levels, levels
    )
    made = pool.made.at[index].add(valid.sum(dtype=jnp.int32))
    return pool._replace(levels=stored, made=made)


def _draw_on(
    rows: int, columns: int, generator: Generator, key: PRNGKeyArray, count: int
) -> tuple[Level, Bool[Array, " count"]]:
    levels, valid = draw(generator, key, count)
    return jax.vmap(lambda level: enlarge(level, rows, columns))(levels), valid


def _valid_first(levels: Level, valid: Bool[Array, " count"]) -> Level:
    order = jnp.argsort(~valid)
    return jax.tree.map(lambda leaf: leaf[order], levels)
