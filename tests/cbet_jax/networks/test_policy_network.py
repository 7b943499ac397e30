"""The policy's network: its size, its parameters, acting step by step."""

import jax
import jax.numpy as jnp
import numpy as np

from cbet_jax.config import NetworkSettings
from cbet_jax.networks import policy_network

SMALL = NetworkSettings(channels=4, dense_units=8, lstm_layers=2, lstm_units=8)
STEPS, AGENTS = 7, 3


def test_the_papers_network_has_17_9_million_parameters():
    network = policy_network.PolicyNetwork(NetworkSettings(), 7)
    shapes = jax.eval_shape(
        lambda key: policy_network.init_params(network, key, (7, 7, 3)), jax.random.key(0)
    )
    count = sum(np.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))
    assert count == 17_904_584


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
