"""The mixing function against MurmurHash3's."""

import jax.numpy as jnp
import numpy as np

from envs.hashing import mix


def _murmur3_finalizer(bits: int) -> int:
    bits = (bits ^ bits >> 16) * 0x85EBCA6B % 2**32
    bits = (bits ^ bits >> 13) * 0xC2B2AE35 % 2**32
    return bits ^ bits >> 16


def test_numbers_are_mixed_as_by_murmurhash3():
    numbers = [0, 1, 2, 0xDEADBEEF, 2**32 - 1]
    found = mix(jnp.array(numbers, jnp.uint32))
    np.testing.assert_array_equal(found, [_murmur3_finalizer(number) for number in numbers])
    assert int(found[1]) == 0x514E28B7
