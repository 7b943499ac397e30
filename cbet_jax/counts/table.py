"""Visit counts in a hash table on the device, with resets that cost nothing.

A table is a row of buckets of `WAYS` slots. A key has two buckets to choose from and is
stored in the emptier one, which keeps overflow away until a table is more than half full. Each
slot carries the generation in which it was written: a reset raises the table's generation,
and every older slot is free from then on, whatever the table's size (paper, section 3.2,
"randomly reset counts").

Two keys are taken for one if they share a bucket and 32 further bits: with probability
under 2^-29 a look-up. A key that finds no free slot is counted as new (N = 1) and as
overflow; it is never merged with another.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32

WAYS = 4
FINGERPRINT, GENERATION, COUNT = range(3)


class CountTable(NamedTuple):
    """The counts of one actor."""

    slots: UInt32[Array, "slots 3"]  # fingerprint, generation, count
    generation: UInt32[Array, ""]  # slots of other generations are free
    overflow: Int[Array, ""]  # visits that found no slot, since the table was made


def empty_table(capacity: int) -> CountTable:
    """Returns a table of `capacity` slots (a power of two, at least 2 * WAYS)."""
    return CountTable(
        slots=jnp.zeros((capacity, 3), jnp.uint32),
        generation=jnp.ones((), jnp.uint32),
        overflow=jnp.zeros((), jnp.int32),
    )


def empty_tables(actors: int, capacity: int) -> CountTable:
    """Returns one empty table an actor: arrays with a leading axis `[actors]`."""
    table = empty_table(capacity)
    return jax.tree.map(lambda leaf: jnp.tile(leaf, (actors, *[1] * leaf.ndim)), table)


def visit(table: CountTable, key: UInt32[Array, "2"]) -> tuple[CountTable, UInt32[Array, ""]]:
    """Counts one visit of `key` and returns its count, this visit included (N >= 1).

    The barriers keep XLA from looking the same slots up again for every use of them.
    """
    apart = jax.lax.optimization_barrier
    capacity = table.slots.shape[0]
    buckets = apart(_buckets(key, capacity))
    slots = table.slots.reshape(-1, WAYS, 3).at[buckets].get(mode="promise_in_bounds")
    slots = apart(slots)  # [2, WAYS, 3]
    current = slots[..., GENERATION] == table.generation
    found = current & (slots[..., FINGERPRINT] == key[1])
    place, stored = _choose(buckets, found, ~current)

    count = apart(jnp.where(found, slots[..., COUNT], 0).sum(dtype=jnp.uint32) + 1)
    entry = jnp.stack([key[1], table.generation, count])
    slots = table.slots.at[jnp.where(stored, place, capacity)].set(entry, mode="drop")
    overflow = table.overflow + ~stored
    return CountTable(slots, table.generation, overflow), count


def reset(table: CountTable, now: Bool[Array, ""]) -> CountTable:
    """Forgets all counts where `now` is true."""
    return table._replace(generation=table.generation + now.astype(jnp.uint32))


def _buckets(key: UInt32[Array, "2"], capacity: int) -> UInt32[Array, "2"]:
    """Returns the two buckets that `key` may be stored in."""
    buckets = capacity // WAYS
    first = key[0] & (buckets - 1)
    second = first ^ (((key[0] >> 16) | 1) & (buckets - 1))  # another bucket than the first
    return jnp.stack([first, second])


def _choose(
    buckets: UInt32[Array, "2"], found: Bool[Array, "2 ways"], free: Bool[Array, "2 ways"]
) -> tuple[UInt32[Array, ""], Bool[Array, ""]]:
    """Returns the slot to write, and whether there is one.

    The slot that holds the key comes first, then the first free slot of the emptier bucket.
    """
    room = free.sum(1)
    preferred = jnp.stack([room[0] >= room[1], room[0] < room[1]])
    rank = jnp.where(found, 2, free & preferred[:, None])
    last_first = jnp.arange(2 * WAYS)[::-1].reshape(2, WAYS)
    best = jax.lax.optimization_barrier((rank * (2 * WAYS) + last_first).max())
    slot = 2 * WAYS - 1 - best % (2 * WAYS)
    bucket = jnp.where(slot < WAYS, buckets[0], buckets[1])
    return bucket * WAYS + (slot % WAYS).astype(jnp.uint32), best >= 2 * WAYS
