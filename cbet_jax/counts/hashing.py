"""Hash keys of observations: 64 bits, as two 32-bit lanes.

The first stage is linear (modulo 2^32): a random multiple of each number, summed. So the hash of a
difference is the difference of the hashes, and a change of the world is hashed without subtracting
two panoramas.

Two different observations share a lane with a probability of at most 2^(k - 31), where 2^k is the
largest power of two that divides all their differences. In a gridworld k is at most 11, so both
lanes agree by chance once in 2^40.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Integer, PRNGKeyArray, UInt32

from envs.barrier import materialize
from envs.hashing import mix

LANES = 2
MAX_TERMS = 8  # terms of a sum in one loop


class LinearHash(NamedTuple):
    """The multipliers of the linear stage, drawn once for a run."""

    multipliers: UInt32[Array, "lanes numbers"]


def make_linear_hash(key: PRNGKeyArray, numbers: int) -> LinearHash:
    """Draw odd multipliers for observations of `numbers` integers."""
    return LinearHash(jax.random.bits(key, (LANES, numbers), jnp.uint32) | 1)


def linear(
    hash_: LinearHash, numbers: Integer[Array, "numbers *worlds"]
) -> UInt32[Array, "lanes *worlds"]:
    """Return the linear stage of the hash of one observation in each of many worlds.

    Worlds are on the last axes, side by side in memory, and the sum is taken in two steps. So XLA
    loops over worlds, in loops short enough to keep the sums in registers.
    """
    count, *worlds = numbers.shape
    terms = max(size for size in range(1, MAX_TERMS + 1) if count % size == 0)
    multipliers = hash_.multipliers.reshape(LANES, count, *[1] * len(worlds))
    products = multipliers * numbers.astype(jnp.uint32)
    products = products.reshape(LANES, count // terms, terms, *worlds)
    return materialize(products.sum(2, dtype=jnp.uint32)).sum(1, dtype=jnp.uint32)


def finish(lanes: UInt32[Array, "lanes"]) -> UInt32[Array, "lanes"]:
    """Return the key: the lanes mixed so that every bit of them affects every bit of the key."""
    first = mix(lanes[0])
    second = mix(lanes[1] ^ first)
    return jnp.stack([first + second, second])
