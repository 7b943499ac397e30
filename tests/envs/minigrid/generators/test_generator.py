"""The random choices that generators share."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.minigrid.generators.generator import randint, randints, split

BOUNDS = ((0, 1), (0, 6), (2, 6), (0, 9), (1, 100_000), (3, 3))


@jax.jit
def drawn(key):
    """Keys and numbers of ours, and those of jax."""
    seeds, keys = split(key, len(BOUNDS)), jax.random.split(key, len(BOUNDS))
    own = [randint(seed, *bounds) for seed, bounds in zip(seeds, BOUNDS, strict=True)]
    theirs = [jax.random.randint(k, (), *bounds) for k, bounds in zip(keys, BOUNDS, strict=True)]
    own_keys = jax.random.key_data(jnp.stack([seed.key for seed in seeds]))
    several = randints(key, (4, 1), 1, 5), jax.random.randint(key, (4, 1), 1, 5)
    return (own_keys, own, several[0]), (jax.random.key_data(keys), theirs, several[1])


@pytest.mark.parametrize("seed", range(3))
def test_numbers_are_those_that_jax_draws_one_by_one(seed):
    jax.tree.map(np.testing.assert_array_equal, *drawn(jax.random.key(seed)))
