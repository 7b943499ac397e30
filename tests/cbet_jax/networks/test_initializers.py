"""How parameters are initialised."""

import jax
import numpy as np
import pytest

from cbet_jax.networks import initializers

KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("initializer", "gain"), [(initializers.HIDDEN, np.sqrt(2)), (initializers.OUTPUT, 1.0)]
)
def test_weights_are_orthogonal_with_their_gain(initializer, gain):
    weights = np.asarray(initializer(KEY, (12, 7)))
    np.testing.assert_allclose(weights.T @ weights, gain**2 * np.eye(7), atol=1e-5)


def test_an_lstms_weights_are_uniform_within_pytorchs_bound():
    weights = np.asarray(initializers.lstm(25)(KEY, (40, 100)))
    np.testing.assert_allclose([weights.min(), weights.max()], [-0.2, 0.2], rtol=0.01)
    np.testing.assert_allclose(weights.std(), 0.2 / np.sqrt(3), rtol=0.05)
