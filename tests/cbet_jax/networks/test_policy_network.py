"""The policy's network: its size, its parameters, acting step by step."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import NetworkSettings
from cbet_jax.networks import policy_network

SMALL = NetworkSettings(channels=4, dense_units=8, lstm_layers=2, lstm_units=8)
STEPS, AGENTS, VIEW = 7, 3, (7, 7, 3)
NETWORK = policy_network.PolicyNetwork(SMALL, 7)
APPLY = jax.jit(partial(policy_network.apply, NETWORK))


@pytest.fixture(scope="module")
def params():
    return jax.jit(lambda key: policy_network.init_params(NETWORK, key, VIEW))(jax.random.key(0))


def _views(*shape):
    return jax.random.randint(jax.random.key(1), (*shape, *VIEW), 0, 11).astype(jnp.uint8)


def _assert_close(ours, theirs):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), ours, theirs)


def test_the_papers_network_has_17_9_million_parameters():
    network = policy_network.PolicyNetwork(NetworkSettings(), 7)
    shapes = jax.eval_shape(
        lambda key: policy_network.init_params(network, key, VIEW), jax.random.key(0)
    )
    count = sum(np.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))
    assert count == 17_904_584


def test_precomputed_parameters_act_alike_and_hold_the_matrices(params):
    view = _views(AGENTS)
    precomputed = jax.jit(partial(policy_network.precompute, NETWORK))(params, view)
    matrix = precomputed["matrices"]["convolution_0"]["matrix"]
    assert matrix.shape == (3, 7, 3, 1, 4, 4)
    first, state = jnp.ones((1, AGENTS), bool), policy_network.initial_state(SMALL, AGENTS)
    plain = APPLY(params, view[None], first, state)
    _assert_close(APPLY(precomputed, view[None], first, state), plain)


def test_factors_that_are_rounded_once_give_the_same_bits(params):
    network = policy_network.PolicyNetwork(replace(SMALL, factors="bfloat16"), 7)
    view, first = _views(AGENTS), jnp.ones((1, AGENTS), bool)
    state = policy_network.initial_state(SMALL, AGENTS)
    apply = jax.jit(partial(policy_network.apply, network))
    precomputed = jax.jit(partial(policy_network.precompute, network))(params, view)
    rounded = {str(leaf.dtype) for leaf in jax.tree.leaves(precomputed["params"]["lstm_0"])}
    assert rounded == {"bfloat16", "float32"}
    assert precomputed["params"]["policy"]["kernel"].dtype == jnp.float32
    found, plain = (apply(each, view[None], first, state) for each in (precomputed, params))
    jax.tree.map(np.testing.assert_array_equal, found, plain)


def test_acting_step_by_step_equals_learning_on_the_whole_sequence(params):
    view = _views(STEPS, AGENTS)
    first = jax.random.bernoulli(jax.random.key(2), 0.3, (STEPS, AGENTS))
    state = policy_network.initial_state(SMALL, AGENTS)
    logits, values, final = APPLY(params, view, first, state)
    for t in range(STEPS):
        *found, state = APPLY(params, view[t : t + 1], first[t : t + 1], state)
        _assert_close(found, [logits[t : t + 1], values[t : t + 1]])
    _assert_close(state, final)


def test_lstm_parameters_are_drawn_as_pytorch_draws_them(params):
    lstm = params["params"]["lstm_0"]
    assert set(lstm) == {"input_weights", "hidden_weights", "input_bias", "hidden_bias"}
    bound = 1 / np.sqrt(SMALL.lstm_units)
    largest = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(lstm))
    assert 0.9 * bound < largest <= bound
    policy = np.asarray(params["params"]["policy"]["kernel"])
    np.testing.assert_allclose(policy.T @ policy, np.eye(7), atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "gain"),
    [("convolution_0", 2), ("dense_0", 2), ("dense_1", 2), ("policy", 1), ("value", 1)],
)
def test_layers_are_orthogonal_and_twice_as_large_before_a_nonlinearity(params, layer, gain):
    """Squared, as the published code's: sqrt(2) before a ReLU or an ELU, 1 at the end."""
    kernel = np.asarray(params["params"][layer]["kernel"])
    kernel = kernel.T if kernel.shape[0] > kernel.shape[1] else kernel
    np.testing.assert_allclose(kernel @ kernel.T, gain * np.eye(len(kernel)), atol=1e-5)
