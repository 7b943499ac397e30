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
    places = apart(_places(apart(key), table.slots.shape[0]))
    slots = apart(table.slots[places])  # [2 * WAYS, 3]
    current = slots[:, GENERATION] == table.generation
    found = current & (slots[:, FINGERPRINT] == key[1])
    place, stored = _choose(places, found, ~current)

    count = jnp.where(found, slots[:, COUNT], 0).sum(dtype=jnp.uint32) + 1
    entry = jnp.stack([key[1], table.generation, count])
    entry = apart(jnp.where(stored, entry, slots[0]))
    slots = table.slots.at[place].set(entry)
    overflow = table.overflow + ~stored
    return CountTable(slots, table.generation, overflow), count


def reset(table: CountTable, now: Bool[Array, ""]) -> CountTable:
    """Forgets all counts where `now` is true."""
    return table._replace(generation=table.generation + now.astype(jnp.uint32))


def _places(key: UInt32[Array, "2"], capacity: int) -> Int[Array, "ways"]:
    """Returns the slots of the two buckets that `key` may be stored in."""
    buckets = capacity // WAYS
    first = key[0] & (buckets - 1)
    second = first ^ (((key[0] >> 16) | 1) & (buckets - 1))  # another bucket than the first
    starts = jnp.stack([first, second]) * WAYS
    return (starts[:, None] + jnp.arange(WAYS, dtype=jnp.uint32)).reshape(-1).astype(jnp.int32)


def _choose(
    places: Int[Array, "ways"], found: Bool[Array, "ways"], free: Bool[Array, "ways"]
) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """Returns the slot to write, and whether there is one (`places[0]` if not).

    The slot that holds the key comes first, then the first free slot of the emptier bucket.
    """
    room = free.reshape(2, WAYS).sum(1)
    preferred = jnp.repeat(jnp.stack([room[0] >= room[1], room[0] < room[1]]), WAYS)
    rank = jnp.where(found, 3, jnp.where(free, 1 + preferred, 0))
    best = jnp.argmax(rank)
    return jnp.where(rank[best] > 0, places[best], places[0]), rank[best] > 0
