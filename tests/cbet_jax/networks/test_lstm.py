"""The unrolled LSTM against the textbook's, and its gradient against the automatic one."""

from operator import itemgetter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.networks.lstm import Carry, unroll

STEPS, AGENTS, UNITS = 7, 3, 5


@pytest.fixture(params=[(AGENTS, UNITS), (16, 512)], ids=["small", "large"])
def lstm_inputs(request):
    agents, units = request.param
    keys = jax.random.split(jax.random.key(0), 5)
    projected = jax.random.normal(keys[0], (STEPS, agents, 4 * units))
    weights = jax.random.normal(keys[1], (units, 4 * units)) / jnp.sqrt(units)
    first = jax.random.bernoulli(keys[2], 0.3, (STEPS, agents))
    initial = Carry(*jax.random.normal(keys[3], (2, agents, units)))
    return projected, first, weights, initial


def _plain_lstm(projected, first, weights, initial):
    """An LSTM as the textbooks write it."""
    hidden, cell, outputs = initial.hidden, initial.cell, []
    for t in range(projected.shape[0]):
        hidden, cell = (jnp.where(first[t][:, None], 0, x) for x in (hidden, cell))
        i, f, g, o = jnp.split(projected[t] + hidden @ weights, 4, axis=-1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        outputs.append(hidden)
    return jnp.stack(outputs), Carry(hidden, cell)


def test_unroll_is_an_lstm(lstm_inputs):
    ours, theirs = unroll(*lstm_inputs), _plain_lstm(*lstm_inputs)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), ours, theirs)


def test_the_gradient_written_out_equals_the_automatic_one(lstm_inputs):
    projected, first, weights, initial = lstm_inputs
    mix = jax.random.normal(jax.random.key(9), (STEPS, *initial.hidden.shape))

    def loss(lstm):
        def scalar(projected, weights, initial):
            outputs, final = lstm(projected, first, weights, initial)
            return (outputs * mix).sum() + (final.hidden * final.cell).sum()

        return jax.grad(scalar, argnums=(0, 1, 2))(projected, weights, initial)

    ours, theirs = loss(unroll), loss(_plain_lstm)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), ours, theirs)


def test_seeds_are_unrolled_side_by_side(lstm_inputs):
    seeds = jax.tree.map(lambda x: jnp.stack([x, x[::-1]]), lstm_inputs)
    both = jax.vmap(unroll)(*seeds)
    for seed in range(2):
        ours, inputs = (jax.tree.map(itemgetter(seed), tree) for tree in (both, seeds))
        alone = unroll(*inputs)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), ours, alone)


def test_seeds_have_gradients_side_by_side(lstm_inputs):
    projected, first, weights, initial = lstm_inputs
    gradient = jax.grad(lambda w: unroll(projected, first, w, initial)[0].sum())
    both = jax.vmap(gradient)(jnp.stack([weights, weights[::-1]]))
    for ours, seed in zip(both, (weights, weights[::-1]), strict=True):
        np.testing.assert_allclose(ours, gradient(seed), atol=1e-4)
