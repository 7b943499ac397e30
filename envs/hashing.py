"""The mixing function of all hashes."""

import jax.numpy as jnp
from jaxtyping import Array, UInt32


def mix(bits: UInt32[Array, "*shape"]) -> UInt32[Array, "*shape"]:
    """Return bits that each depend on every bit of the input (MurmurHash3's finalizer)."""
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * jnp.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)
