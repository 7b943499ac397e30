"""The network against plain definitions: a convolution, an LSTM cell, automatic gradients."""

from operator import itemgetter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import NetworkSettings
from cbet_jax.networks import lstm as recurrent
from cbet_jax.networks import policy_network
from cbet_jax.networks.lstm import Carry

SMALL = NetworkSettings(channels=4, dense_units=8, lstm_layers=2, lstm_units=8)
STEPS, AGENTS, UNITS = 7, 3, 5


def test_the_papers_network_has_17_9_million_parameters():
    network = policy_network.PolicyNetwork(NetworkSettings(), 7)
    shapes = jax.eval_shape(
        lambda key: policy_network.init_params(network, key, (7, 7, 3)), jax.random.key(0)
    )
    count = sum(np.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))
    assert count == 17_904_584


def test_the_matrix_of_a_convolution_is_that_convolution():
    image = jax.random.normal(jax.random.key(0), (5, 7, 7, 3))
    kernel = jax.random.normal(jax.random.key(1), (27, 4))
    expected = jax.lax.conv_general_dilated(
        image,
        kernel.reshape(3, 3, 3, 4),
        window_strides=(2, 2),
        padding=((1, 1), (1, 1)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    matrix = policy_network.convolution_matrix(kernel, image.shape[1:])
    np.testing.assert_allclose(jnp.tensordot(image, matrix, axes=3), expected, atol=1e-4)


def test_elu_and_its_gradient():
    x = jnp.linspace(-20, 5, 101)
    np.testing.assert_allclose(policy_network.elu(x), jax.nn.elu(x), atol=1e-6)
    ours, theirs = (
        jax.grad(lambda x, f=f: f(x).sum())(x) for f in (policy_network.elu, jax.nn.elu)
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_a_large_image_is_convolved_without_its_matrix():
    image = jax.random.normal(jax.random.key(0), (2, 33, 16, 3))
    layer = policy_network.Convolution(channels=4)
    params = layer.init(jax.random.key(1), image)
    expected = jax.lax.conv_general_dilated(
        image,
        params["params"]["kernel"].reshape(3, 3, 3, 4),
        window_strides=(2, 2),
        padding=((1, 1), (1, 1)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    np.testing.assert_allclose(layer.apply(params, image), expected, atol=1e-4)


def test_precomputed_parameters_act_alike_and_hold_the_matrices():
    network = policy_network.PolicyNetwork(SMALL, 7)
    params = policy_network.init_params(network, jax.random.key(0), (7, 7, 3))
    view = jax.random.randint(jax.random.key(1), (AGENTS, 7, 7, 3), 0, 11).astype(jnp.uint8)
    precomputed = policy_network.precompute(network, params, view)
    matrix = precomputed["matrices"]["convolution_0"]["matrix"]
    assert matrix.shape == (7, 7, 3, 4, 4, 4)
    first, state = jnp.ones((1, AGENTS), bool), policy_network.initial_state(SMALL, AGENTS)
    plain = policy_network.apply(network, params, view[None], first, state)
    fast = policy_network.apply(network, precomputed, view[None], first, state)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), plain, fast)


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
    ours, theirs = recurrent.unroll(*lstm_inputs), _plain_lstm(*lstm_inputs)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), ours, theirs)


def test_the_gradient_written_out_equals_the_automatic_one(lstm_inputs):
    projected, first, weights, initial = lstm_inputs
    mix = jax.random.normal(jax.random.key(9), (STEPS, *initial.hidden.shape))

    def loss(lstm):
        def scalar(projected, weights, initial):
            outputs, final = lstm(projected, first, weights, initial)
            return (outputs * mix).sum() + (final.hidden * final.cell).sum()

        return jax.grad(scalar, argnums=(0, 1, 2))(projected, weights, initial)

    ours, theirs = loss(recurrent.unroll), loss(_plain_lstm)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), ours, theirs)


def test_seeds_are_unrolled_side_by_side(lstm_inputs):
    seeds = jax.tree.map(lambda x: jnp.stack([x, x[::-1]]), lstm_inputs)
    both = jax.vmap(recurrent.unroll)(*seeds)
    for seed in range(2):
        ours, inputs = (jax.tree.map(itemgetter(seed), tree) for tree in (both, seeds))
        alone = recurrent.unroll(*inputs)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), ours, alone)


def test_seeds_have_gradients_side_by_side(lstm_inputs):
    projected, first, weights, initial = lstm_inputs
    gradient = jax.grad(lambda w: recurrent.unroll(projected, first, w, initial)[0].sum())
    both = jax.vmap(gradient)(jnp.stack([weights, weights[::-1]]))
    for ours, seed in zip(both, (weights, weights[::-1]), strict=True):
        np.testing.assert_allclose(ours, gradient(seed), atol=1e-4)


def test_acting_step_by_step_equals_learning_on_the_whole_sequence():
    network = policy_network.PolicyNetwork(SMALL, 7)
    params = policy_network.init_params(network, jax.random.key(0), (7, 7, 3))
    shape = (STEPS, AGENTS, 7, 7, 3)
    view = jax.random.randint(jax.random.key(1), shape, 0, 11).astype(jnp.uint8)
    first = jax.random.bernoulli(jax.random.key(2), 0.3, (STEPS, AGENTS))
    state = policy_network.initial_state(SMALL, AGENTS)
    whole, values, final = network.apply(params, view, first, state)
    for t in range(STEPS):
        logits, value, state = network.apply(params, view[t : t + 1], first[t : t + 1], state)
        np.testing.assert_allclose(logits[0], whole[t], atol=1e-5)
        np.testing.assert_allclose(value[0], values[t], atol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), state, final)


def test_lstm_parameters_are_drawn_as_pytorch_draws_them():
    network = policy_network.PolicyNetwork(SMALL, 7)
    params = policy_network.init_params(network, jax.random.key(0), (7, 7, 3))["params"]
    lstm = params["lstm_0"]
    assert set(lstm) == {"input_weights", "hidden_weights", "input_bias", "hidden_bias"}
    bound = 1 / np.sqrt(SMALL.lstm_units)
    largest = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(lstm))
    assert 0.9 * bound < largest <= bound
    policy = np.asarray(params["policy"]["kernel"])
    np.testing.assert_allclose(policy.T @ policy, np.eye(7), atol=1e-5)
