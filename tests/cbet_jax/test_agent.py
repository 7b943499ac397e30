"""A policy biased by a frozen one: what it is, what it learns, what stays as it was."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.agent import AgentParams, BiasedState, biased, decay, network_agent
from cbet_jax.config import NetworkSettings, TrainSettings
from cbet_jax.learner import batch_loss
from tests.support.moments import trajectory, views

VIEW, ACTIONS, AGENTS = (7, 7, 3), 3, 2
TASK = network_agent(NetworkSettings(1, 2, 1, 4, 1, 4), ACTIONS, VIEW)
BIAS = network_agent(NetworkSettings(1, 2, 1, 6, 2, 6), ACTIONS, VIEW)  # of another size
SEEN = views([[1, 9], [2, 8], [3, 7], [4, 6]])
FIRST = jnp.array([[True, True], [False, False], [False, True], [False, False]])


@pytest.fixture(scope="module")
def params() -> AgentParams:
    return jax.jit(biased(TASK, BIAS, decay(2.0, None)).init)(jax.random.key(0))


def test_logits_are_the_tasks_and_alpha_times_the_frozen_ones(params):
    """Each network goes on from its own recurrent state, and both are zeroed at an end."""
    agent = biased(TASK, BIAS, decay(2.0, None))
    own = AgentParams(params.learnt), AgentParams(params.fixed.policy)
    state, states = agent.begin(AGENTS), (TASK.begin(AGENTS), BIAS.begin(AGENTS))
    for _ in range(2):
        logits, value, state = agent.run(params, SEEN, FIRST, state)
        task_logits, task_value, task_state = TASK.run(own[0], SEEN, FIRST, states[0])
        bias_logits, _, bias_state = BIAS.run(own[1], SEEN, FIRST, states[1])
        states = task_state, bias_state
        np.testing.assert_allclose(logits, task_logits + 2 * bias_logits, rtol=1e-6)
        np.testing.assert_array_equal(value, task_value)
        chex.assert_trees_all_equal(state, BiasedState(*states))
    assert float(jnp.abs(bias_logits).min()) > 0


def test_a_weight_of_zero_leaves_the_task_alone(params):
    agent = biased(TASK, BIAS, decay(0.0, None))
    params = params._replace(fixed=params.fixed._replace(alpha=jnp.zeros(())))
    logits, *_ = agent.run(params, SEEN, FIRST, agent.begin(AGENTS))
    alone, *_ = TASK.run(AgentParams(params.learnt), SEEN, FIRST, TASK.begin(AGENTS))
    np.testing.assert_array_equal(logits, alone)


def test_folded_parameters_act_alike(params):
    agent = biased(TASK, BIAS, decay(2.0, None))
    plain, *_ = agent.run(params, SEEN, FIRST, agent.begin(AGENTS))
    folded, *_ = agent.run(agent.fold(params, SEEN[0]), SEEN, FIRST, agent.begin(AGENTS))
    np.testing.assert_allclose(folded, plain, atol=1e-5)


def test_no_gradient_reaches_the_frozen_policy(params):
    agent = biased(TASK, BIAS, decay(2.0, None))
    batch = trajectory([[1, 9], [2, 8]], [[0, 1]], num_actions=ACTIONS)
    batch = batch._replace(initial_state=agent.begin(AGENTS))

    def loss(params):
        return batch_loss(params, batch, jnp.ones((1, AGENTS)), agent, TrainSettings()).total

    gradient = jax.grad(loss)(params)
    assert all((np.asarray(leaf) == 0).all() for leaf in jax.tree.leaves(gradient.fixed.policy))
    assert any((np.asarray(leaf) != 0).any() for leaf in jax.tree.leaves(gradient.learnt))


@pytest.mark.parametrize(
    ("frames", "expected"), [(None, [3, 3, 3, 3]), (100, [3.0, 1.5, 0.0, 0.0])]
)
def test_alpha_stays_or_falls_to_zero(frames, expected):
    schedule = decay(3.0, frames)
    np.testing.assert_allclose([schedule(jnp.array(f)) for f in (0.0, 50, 100, 150)], expected)
