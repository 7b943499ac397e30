"""Running moments, beside numpy's of all values at once."""

import jax
import jax.numpy as jnp
import numpy as np

from cbet_jax.intrinsic.running_moments import begin, include
from cbet_jax.types import unchanged


def test_moments_are_those_of_all_values_so_far():
    random = np.random.default_rng(0)
    batches = [random.normal(7, 3, (20, 5, 2)) * [1, 10] for _ in range(4)]
    add = jax.jit(lambda moments, values: include(moments, values, unchanged))
    moments = begin(2)
    for number, batch in enumerate(batches, 1):
        moments = add(moments, jnp.asarray(batch))
        values = np.concatenate(batches[:number]).reshape(-1, 2)
        np.testing.assert_allclose(moments.mean, values.mean(0), rtol=1e-4)
        np.testing.assert_allclose(moments.deviation, values.std(0), rtol=1e-4)


def test_two_devices_have_the_moments_of_both():
    """What averages over the devices is given; here it is that of two halves.

    Values weigh what they do on one device: later ones may be seen there.
    """
    one, other = np.array([1.0, 2.0]), np.array([5.0, 12.0])
    means = {float(one.mean()): other, float(other.mean()): one}

    def mean(tree):
        others = means[float(tree[0])]
        return (tree[0] + others.mean()) / 2, (tree[1] + (others**2).mean()) / 2

    mean.devices = 2
    both = np.concatenate([one, other])
    whole = include(begin(), jnp.asarray(both), unchanged)
    for values in (one, other):
        moments = include(begin(), jnp.asarray(values), mean)
        np.testing.assert_allclose(moments.mean, both.mean(), rtol=1e-3)
        np.testing.assert_allclose(moments.variance, both.var(), rtol=1e-3)
        assert moments.weight == whole.weight


def test_what_never_changes_has_no_deviation():
    moments = include(begin(), jnp.full((1000,), 3.0), unchanged)
    assert float(moments.deviation) < 0.01


def test_a_large_first_batch_without_spread_leaves_a_variance():
    moments = include(begin(), jnp.zeros(4096), unchanged)
    np.testing.assert_allclose(moments.variance, 1e-4 / 4096, rtol=1e-4)
