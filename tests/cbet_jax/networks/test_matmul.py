"""Products of rounded factors: sums stay exact, gradients stay float32 and close."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import NetworkSettings
from cbet_jax.networks import matmul, policy_network
from cbet_jax.networks.matmul import loop_matmul

SMALL = NetworkSettings(channels=8, dense_units=32, lstm_layers=2, lstm_units=32)
ROUNDING = 2.0**-8  # of a number, at most half of this, relative to itself


def test_sums_are_taken_in_float32():
    ones = jnp.ones((1, 1000))
    assert matmul.matmul(ones, ones.T, "bfloat16").item() == 1000  # in bfloat16, 256 + 1 is 256


def test_factors_are_rounded_and_nothing_else():
    x, weights = jnp.full((1, 1), 1.0 + 2.0**-10), jnp.full((1, 1), 3.0 + 2.0**-20)
    assert matmul.matmul(x, weights, "bfloat16").item() == 3.0
    assert matmul.matmul(x, weights, "float32").item() == (x * weights).item() > 3.0


@pytest.mark.parametrize("factors", ["float32", "bfloat16"])
@pytest.mark.parametrize("transposed", [False, True])
def test_large_weights_that_a_loop_multiplies_by_are_the_left_factor(factors, transposed):
    draw = lambda seed, *shape: jax.random.normal(jax.random.key(seed), shape)  # noqa: E731
    weights = draw(0, 512, 2048).astype(factors)
    x = draw(1, 32, 2048 if transposed else 512)
    product = loop_matmul(weights, rows=32, steps=2, transposed=transposed)
    right = matmul.matmul_like(x, weights.T if transposed else weights)
    np.testing.assert_allclose(jax.jit(product)(x), right, atol=1e-3)
    barriers = lambda f: str(jax.make_jaxpr(f)(x)).count("optimization_barrier")  # noqa: E731
    assert barriers(product)
    for rows, steps in ((32, 1), (40, 2), (80, 2)):
        assert not barriers(loop_matmul(weights, rows, steps, transposed=transposed))
    x = x[:, :1024]
    assert not barriers(loop_matmul(weights[:, :1024], 32, steps=2, transposed=transposed))


def test_the_gradient_is_that_of_the_rounded_factors():
    keys = jax.random.split(jax.random.key(0), 3)
    x, weights, cotangent = (
        jax.random.normal(k, s) for k, s in zip(keys, ((4, 6, 5), (5, 3), (4, 6, 3)), strict=True)
    )

    @jax.jit
    def pull_back(x, weights, cotangent):
        _, back = jax.vjp(lambda x, w: matmul.matmul(x, w, "bfloat16"), x, weights)
        return back(cotangent)

    by_x, by_weights = pull_back(x, weights, cotangent)
    assert by_x.dtype == by_weights.dtype == jnp.float32
    rounded = [np.asarray(a.astype(jnp.bfloat16), np.float64) for a in (x, weights, cotangent)]
    np.testing.assert_allclose(by_x, rounded[2] @ rounded[1].T, atol=1e-5)
    expected = np.einsum("abi,abo->io", rounded[0], rounded[2])
    np.testing.assert_allclose(by_weights, expected, atol=1e-5)


@pytest.mark.slow
def test_a_network_with_rounded_factors_computes_nearly_the_same_and_learns_in_float32():
    exact, rounded = (
        policy_network.PolicyNetwork(replace(SMALL, factors=factors), 7)
        for factors in ("float32", "bfloat16")
    )
    view = jax.random.randint(jax.random.key(1), (9, 4, 7, 7, 3), 0, 11).astype(jnp.uint8)
    first = jax.random.bernoulli(jax.random.key(2), 0.2, (9, 4))
    params = policy_network.init_params(exact, jax.random.key(0), (7, 7, 3))
    state = policy_network.initial_state(SMALL, 4)

    def loss(params, network):
        logits, value, last = policy_network.apply(network, params, view, first, state)
        assert {leaf.dtype for leaf in jax.tree.leaves((logits, value, last))} == {jnp.dtype("f4")}
        return (logits**2).mean() + value.mean(), logits

    (_, logits), gradient = jax.value_and_grad(loss, has_aux=True)(params, exact)
    (_, close), near = jax.value_and_grad(loss, has_aux=True)(params, rounded)
    assert 0 < jnp.abs(logits - close).max() < 8 * ROUNDING * jnp.abs(logits).max()
    for one, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(near), strict=True):
        assert other.dtype == jnp.float32
        assert jnp.linalg.norm(one - other) < 8 * ROUNDING * jnp.linalg.norm(one) + 1e-9
