"""Convolutions as matrix products against XLA's convolution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.networks import convolution


@jax.jit
def _convolved(image, kernel):
    """XLA's convolution, of stride 2 and padding 1."""
    return jax.lax.conv_general_dilated(
        image,
        kernel.reshape(3, 3, 3, 4),
        window_strides=(2, 2),
        padding=((1, 1), (1, 1)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def test_the_matrix_of_a_convolution_is_that_convolution():
    image = jax.random.normal(jax.random.key(0), (5, 7, 7, 3))
    kernel = jax.random.normal(jax.random.key(1), (27, 4))
    expected = _convolved(image, kernel)
    matrix = convolution.convolution_matrix(kernel, image.shape[1:])
    np.testing.assert_allclose(jnp.tensordot(image, matrix, axes=3), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("size", "matrix"),
    [
        ((33, 16), None),
        ((7, 7), (3, 7, 3, 1, 4, 4)),
        ((8, 5), (3, 5, 3, 1, 3, 4)),
        ((4, 4), (4, 4, 3, 2, 2, 4)),
    ],
    ids=["patches", "bands", "bands of an even height", "one matrix"],
)
def test_a_layer_is_a_convolution_and_an_elu(size, matrix):
    image = jax.random.normal(jax.random.key(0), (2, *size, 3))
    layer = convolution.Convolution(channels=4)
    params = layer.init(jax.random.key(1), image)
    params["params"]["bias"] = jnp.array([0.5, -0.5, 0.0, 1.0])
    expected = jax.nn.elu(_convolved(image, params["params"]["kernel"]) + params["params"]["bias"])
    np.testing.assert_allclose(jax.jit(layer.apply)(params, image), expected, atol=1e-4)
    _, stored = jax.eval_shape(lambda: layer.apply(params, image, mutable=[convolution.MATRICES]))
    assert [leaf.shape for leaf in jax.tree.leaves(stored)] == ([matrix] if matrix else [])


def test_elu_and_its_gradient():
    x = jnp.linspace(-20, 5, 101)

    def values_and_slopes(function):
        return jax.jit(jax.vmap(jax.value_and_grad(function)))(x)

    ours, theirs = values_and_slopes(convolution.elu), values_and_slopes(jax.nn.elu)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
