"""The hash of observations against Python's integers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.counts import hashing

KEY = jax.random.key(0)


@pytest.mark.parametrize("numbers", [1, 8, 13, 147])  # sums of one loop, of two, of a prime number
def test_the_linear_stage_is_a_sum_of_multiples(numbers):
    hash_ = hashing.make_linear_hash(KEY, numbers)
    seen = np.random.default_rng(0).integers(0, 256, (numbers, 3))
    multipliers = np.asarray(hash_.multipliers, object)
    assert (multipliers % 2 == 1).all()
    found = jax.jit(hashing.linear)(hash_, jnp.asarray(seen, jnp.uint8))
    np.testing.assert_array_equal(found, (multipliers @ seen.astype(object)) % 2**32)


def test_the_hash_of_a_difference_is_the_difference_of_the_hashes():
    hash_ = hashing.make_linear_hash(KEY, 5)
    one, other = jnp.array([[3], [0], [9], [2], [7]]), jnp.array([[1], [4], [9], [0], [8]])
    difference = hashing.linear(hash_, one) - hashing.linear(hash_, other)
    np.testing.assert_array_equal(hashing.linear(hash_, one - other), difference)


def test_every_bit_of_the_lanes_moves_about_half_of_the_keys_bits():
    lanes = np.random.default_rng(0).integers(2**32, size=(200, 2), dtype=np.uint32)
    one_bit = np.array([[1 << bit, 0] for bit in range(32)], np.uint32)
    one_bit = np.concatenate([one_bit, one_bit[:, ::-1]])  # of either lane
    finish = jax.vmap(hashing.finish)
    moved = jax.jit(jax.vmap(lambda bit: finish(lanes ^ bit) ^ finish(lanes)))(one_bit)
    share = np.bitwise_count(np.asarray(moved)).sum(-1).mean(1) / 64
    np.testing.assert_allclose(share, 0.5, atol=0.05)
