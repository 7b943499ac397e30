"""Hash keys of observations: 64 bits, as two 32-bit lanes.

The first stage is linear (modulo 2^32): a random multiple of each number, summed. So the
hash of a difference is the difference of the hashes, and a change of the world is hashed
without ever subtracting two panoramas. Two observations that differ share a lane with
probability 2^(k - 31) at most, 2^k being the largest power of two that divides all their
differences; k is at most 10 for the codes of a gridworld, so both lanes agree by chance once
in 2^42.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Integer, PRNGKeyArray, UInt32

LANES = 2
MOST_TERMS = 8  # of a sum in one loop


class LinearHash(NamedTuple):
    """The multipliers of the linear stage, drawn once for a run."""

    multipliers: UInt32[Array, "lanes numbers"]


def make_linear_hash(key: PRNGKeyArray, numbers: int) -> LinearHash:
    """Draws odd multipliers for observations of `numbers` integers."""
    return LinearHash(jax.random.bits(key, (LANES, numbers), jnp.uint32) | 1)


def linear(
    hash_: LinearHash, observations: Integer[Array, "*shape worlds"]
) -> UInt32[Array, "lanes worlds"]:
    """Returns the linear stage of the hash of one observation in each of many worlds.

    Worlds stand on the last axis, side by side in memory, and the sum is taken in two steps:
    XLA's loops are then over worlds, and short enough to keep the sums in registers.
    """
    numbers = observations.reshape(-1, observations.shape[-1]).astype(jnp.uint32)
    count = len(numbers)
    at_once = max(size for size in range(1, MOST_TERMS + 1) if count % size == 0)
    products = hash_.multipliers[..., None] * numbers
    products = products.reshape(LANES, count // at_once, at_once, -1)
    sums = jax.lax.optimization_barrier(products.sum(2, dtype=jnp.uint32))
    return sums.sum(1, dtype=jnp.uint32)


def finish(lanes: UInt32[Array, "lanes"]) -> UInt32[Array, "lanes"]:
    """Mixes the lanes so that every bit of them moves every bit of the key (MurmurHash3)."""
    first = _mix(lanes[0])
    second = _mix(lanes[1] ^ first)
    return jnp.stack([first + second, second])


def _mix(bits: UInt32[Array, ""]) -> UInt32[Array, ""]:
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * jnp.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)
