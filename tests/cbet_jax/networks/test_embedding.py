"""Embeddings: their size, and the distance between two."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import AuxiliarySettings
from cbet_jax.networks.embedding import Embedding, apply, distance, init_params


@pytest.mark.parametrize(("size", "channels"), [(7, (32, 32, 128)), (64, (32,) * 5)])
def test_embeddings_have_128_numbers(size, channels):
    """Of MiniGrid's views and of Habitat's."""
    network, view = Embedding(channels), jnp.zeros((2, 3, size, size, 3), jnp.uint8)

    def embed(key):
        return apply(network, init_params(network, key, view), view)

    assert jax.eval_shape(embed, jax.random.key(0)).shape == (2, 3, 128)
    assert AuxiliarySettings().channels == (32, 32, 128)


@pytest.mark.parametrize(("squared", "expected"), [(False, 5.0), (True, 25.0)])
def test_the_distance_is_the_norm_or_its_square(squared, expected):
    one, other = jnp.array([[[3.0, 1.0]]]), jnp.array([[[0.0, 5.0]]])
    np.testing.assert_allclose(distance(one, other, squared=squared), [[expected]], rtol=1e-6)


@pytest.mark.parametrize("squared", [False, True])
def test_where_nothing_differs_the_gradient_is_zero(squared):
    x = jnp.ones((1, 1, 3))
    gradient = jax.grad(lambda x: distance(x, jnp.ones((1, 1, 3)), squared=squared).sum())(x)
    np.testing.assert_array_equal(gradient, 0)
