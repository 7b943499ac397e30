"""Visit counts in a hash table on the device, with resets that cost nothing.

The table is set-associative, with two choices of bucket: an array of buckets of `WAYS` slots each.
A key hashes to two buckets and is stored in the one with more free slots (Azar et al., "Balanced
Allocations", 1999; with buckets of several slots: Broder and Mitzenmacher, "Using Multiple Hash
Functions to Improve IP Lookups", 2001). So a table does not overflow before it is about half full.
Unlike in cuckoo hashing, a stored key never moves.

Each slot carries a generation stamp. A reset raises the table's generation, which frees all older
slots at once, whatever the table's size (paper, section 3.2: counts are reset at random steps).

Two keys are mistaken for each other if they share a bucket and 32 further bits: with a probability
below 2^-29 a look-up. A key that finds no free slot is counted as new (N = 1) and as overflow; it
is never merged with another.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32

from cbet_jax.config import TrainSettings
from envs.barrier import materialize

WAYS = 4  # slots in a bucket
FINGERPRINT, GENERATION, COUNT = range(3)  # the numbers in a slot
RESET_SLOTS = 2**14  # capacity of a table with resets: ample for p of 0.0005 or more
LASTING_SLOTS = 2**18  # least capacity of a table without resets
MAX_SLOTS = 2**26  # greatest capacity, unless the settings ask for more


class CountTable(NamedTuple):
    """The counts of one actor."""

    slots: UInt32[Array, "slots 3"]  # fingerprint, generation, count
    generation: UInt32[Array, ""]  # slots of other generations are free
    overflow: Int[Array, ""]  # visits without a free slot since the table was made


def table_capacity(settings: TrainSettings, *, lasting: bool) -> int:
    """Return the number of slots of a count table, a power of two: `counts.capacity`, if set.

    A learned policy may meet something new at two of three steps, and a table overflows little
    until it is two thirds full. So a table without resets (`lasting`) has a slot per step.
    """
    if settings.counts.capacity is not None:
        return settings.counts.capacity
    steps = -(-settings.frames // settings.worlds)  # steps of each actor
    slots = max(LASTING_SLOTS, steps) if lasting else RESET_SLOTS
    if settings.counts.shared:
        slots *= settings.worlds
    return min(1 << (slots - 1).bit_length(), MAX_SLOTS)


def empty_table(capacity: int) -> CountTable:
    """Return a table of `capacity` slots (a power of two, at least 2 * WAYS)."""
    return CountTable(
        slots=jnp.zeros((capacity, 3), jnp.uint32),
        generation=jnp.ones((), jnp.uint32),
        overflow=jnp.zeros((), jnp.int32),
    )


def empty_tables(number: int, capacity: int) -> CountTable:
    """Return `number` empty tables: arrays with a leading axis [number]."""
    table = empty_table(capacity)
    return jax.tree.map(lambda leaf: jnp.tile(leaf, (number, *[1] * leaf.ndim)), table)


def visit(table: CountTable, key: UInt32[Array, "2"]) -> tuple[CountTable, UInt32[Array, ""]]:
    """Count one visit of `key`. Return the table and the key's count, this visit included."""
    capacity = table.slots.shape[0]
    buckets = materialize(_buckets(key, capacity))
    slots = table.slots.reshape(-1, WAYS, 3).at[buckets].get(mode="promise_in_bounds")
    slots = materialize(slots)  # [2, WAYS, 3]
    current = slots[..., GENERATION] == table.generation
    found = current & (slots[..., FINGERPRINT] == key[1])
    slot = _choose(buckets, found, ~current, nowhere=capacity)

    count = materialize(jnp.where(found, slots[..., COUNT], 0).sum(dtype=jnp.uint32) + 1)
    entry = jnp.stack([key[1], table.generation, count])
    slots = table.slots.at[slot].set(entry, mode="drop")
    return CountTable(slots, table.generation, table.overflow + (slot == capacity)), count


def reset(table: CountTable, mask: Bool[Array, ""]) -> CountTable:
    """Reset all counts to zero where `mask` is true."""
    return table._replace(generation=table.generation + mask.astype(jnp.uint32))


def _buckets(key: UInt32[Array, "2"], capacity: int) -> UInt32[Array, "2"]:
    """Return the two buckets that `key` may be stored in."""
    buckets = capacity // WAYS
    first = key[0] & (buckets - 1)
    second = first ^ (((key[0] >> 16) | 1) & (buckets - 1))  # never equal to the first
    return jnp.stack([first, second])


def _choose(
    buckets: UInt32[Array, "2"],
    found: Bool[Array, "2 ways"],
    free: Bool[Array, "2 ways"],
    nowhere: int,
) -> UInt32[Array, ""]:
    """Return the slot that holds the key, else the first free slot of the emptier bucket.

    Args:
        buckets: the two that may hold the key.
        found: their slot that holds it, if any.
        free: their free slots.
        nowhere: returned without such a slot; greater than every slot.
    """
    slots = buckets[:, None] * WAYS + jnp.arange(WAYS, dtype=jnp.uint32)
    room = free.sum(1)
    is_emptier = jnp.stack([room[0] >= room[1], room[0] < room[1]])
    candidates = jnp.where(found.any(), found, free & is_emptier[:, None])
    return materialize(jnp.where(candidates, slots, jnp.uint32(nowhere)).min())
