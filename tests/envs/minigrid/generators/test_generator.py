"""The random choices that generators share."""

import jax
import numpy as np
import pytest

from envs.minigrid.generators.generator import randint, randints, split

BOUNDS = ((0, 1), (0, 6), (2, 6), (0, 9), (1, 100_000), (3, 3))


@pytest.mark.parametrize("seed", range(3))
def test_numbers_are_those_that_jax_draws_one_by_one(seed):
    key = jax.random.key(seed)
    seeds, keys = split(key, len(BOUNDS)), jax.random.split(key, len(BOUNDS))
    for one, own_key, (low, high) in zip(seeds, keys, BOUNDS, strict=True):
        assert one.key == own_key
        assert randint(one, low, high) == jax.random.randint(own_key, (), low, high)
    found = randints(key, (4, 1), 1, 5)
    np.testing.assert_array_equal(found, jax.random.randint(key, (4, 1), 1, 5))
