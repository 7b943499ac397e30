"""A policy biased by a frozen one: what it is, what it learns, what stays as it was."""

from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax import Agent, AgentParams, Outputs, make_program, seed_keys
from cbet_jax.agent import BiasedState, biased, linear_decay, make_agent, network_agent
from cbet_jax.config import NetworkSettings, TrainSettings, TransferSettings
from cbet_jax.learner import batch_loss
from tests.support.moments import trajectory, views
from tests.support.tiny import LEARNING, NETWORK
from tests.support.worlds import corridor

VIEW, ACTIONS, AGENTS = (7, 7, 3), 3, 2
TASK = network_agent(NETWORK, ACTIONS, VIEW)
BIAS = network_agent(NetworkSettings(1, 2, 1, 6, 2, 6), ACTIONS, VIEW)  # of another size
SEEN = views([[1, 9], [2, 8], [3, 7], [4, 6]])
FIRST = jnp.array([[True, True], [False, False], [False, True], [False, False]])


@pytest.fixture(scope="module")
def params() -> AgentParams:
    return jax.jit(biased(TASK, BIAS, linear_decay(2.0, None)).init)(jax.random.key(0))


def test_a_network_of_ones_own_learns_in_the_program():
    """Three functions are an agent: here one layer, without memory."""

    def init(key):
        keys = jax.random.split(key)
        draw = jax.nn.initializers.orthogonal()
        layers = {"policy": draw(keys[0], (147, 3)), "value": draw(keys[1], (147, 1))}
        return AgentParams(layers)

    def apply(params, view, first, state, prior=None):
        seen = view.reshape(*first.shape, -1) / 10.0 + 1.0
        value = (seen @ params.learnt["value"])[..., 0]
        return Outputs(seen @ params.learnt["policy"], value, state)

    agent = Agent(init, lambda agents: (), apply)
    train = replace(LEARNING, extrinsic_weight=1.0, intrinsic_coefficient=0.0, frames=60_000)
    train = replace(train, optimizer=replace(train.optimizer, learning_rate=0.01))
    program = make_program(train, corridor(train.worlds), 1, 100, agent=agent)
    state, before = program.advance(program.init(seed_keys(1)))
    for _ in range(4):
        state, after = program.advance(state)
    assert after["success"][-20:].mean() > 0.95 > before["success"][:5].mean()


def test_logits_are_the_tasks_and_alpha_times_the_frozen_ones(params):
    """Each network goes on from its own recurrent state, and both are zeroed at an end."""
    agent = biased(TASK, BIAS, linear_decay(2.0, None))
    apply, apply_task, apply_bias = (jax.jit(each.apply) for each in (agent, TASK, BIAS))
    own = AgentParams(params.learnt), params.fixed.policy
    state, states = (
        agent.initial_state(AGENTS),
        (TASK.initial_state(AGENTS), BIAS.initial_state(AGENTS)),
    )
    for _ in range(2):
        logits, value, state, _ = apply(params, SEEN, FIRST, state)
        task_logits, task_value, task_state, _ = apply_task(own[0], SEEN, FIRST, states[0])
        bias_logits, _, bias_state, _ = apply_bias(own[1], SEEN, FIRST, states[1])
        states = task_state, bias_state
        np.testing.assert_allclose(logits, task_logits + 2 * bias_logits, rtol=1e-6)
        np.testing.assert_array_equal(value, task_value)
        chex.assert_trees_all_equal(state, BiasedState(*states))
    assert float(jnp.abs(bias_logits).min()) > 0


def test_learning_takes_the_frozen_logits_of_acting(params):
    """Those of the last view, which is not acted on, are not known."""
    agent = biased(TASK, BIAS, linear_decay(2.0, None))
    apply, state = jax.jit(agent.apply), agent.initial_state(AGENTS)
    acted = apply(params, SEEN, FIRST, state)
    learnt = apply(params, SEEN, FIRST, state, acted.prior[:-1])
    np.testing.assert_allclose(learnt.logits, acted.logits[:-1], rtol=1e-6)
    np.testing.assert_array_equal(learnt.value, acted.value)
    np.testing.assert_allclose(acted.prior, acted.logits - apply_task(params, state), atol=1e-5)


def apply_task(params, state):
    return jax.jit(TASK.apply)(AgentParams(params.learnt), SEEN, FIRST, state.task).logits


def test_a_weight_of_zero_leaves_the_task_alone(params):
    agent = biased(TASK, BIAS, linear_decay(0.0, None))
    params = params._replace(fixed=params.fixed._replace(alpha=jnp.zeros(())))
    logits, *_ = jax.jit(agent.apply)(params, SEEN, FIRST, agent.initial_state(AGENTS))
    task = AgentParams(params.learnt)
    alone, *_ = jax.jit(TASK.apply)(task, SEEN, FIRST, TASK.initial_state(AGENTS))
    np.testing.assert_array_equal(logits, alone)


def test_a_copy_learns_on_with_the_frozen_policy_as_its_prior():
    """A source's own bias stays its own; acting with other weights leaves the prior as it was."""
    source = biased(TASK, BIAS, linear_decay(2.0, None))
    agent = biased(source, source, linear_decay(1.0, None), added=False)
    params = jax.jit(agent.init)(jax.random.key(1))
    frozen = params.fixed.policy
    wanted = jax.jit(source.apply)(frozen, SEEN, FIRST, source.initial_state(AGENTS))
    apply, state = jax.jit(agent.apply), agent.initial_state(AGENTS)
    begun = apply(params._replace(learnt=frozen.learnt), SEEN, FIRST, state)
    chex.assert_trees_all_close(
        [begun.logits, begun.prior, begun.value], [*[wanted.logits] * 2, wanted.value]
    )
    other = apply(jax.jit(agent.precompute)(params, SEEN[0]), SEEN, FIRST, state)
    own = jax.jit(source.apply)(
        frozen._replace(learnt=params.learnt), SEEN, FIRST, source.initial_state(AGENTS)
    )
    chex.assert_trees_all_close([other.logits, other.prior], [own.logits, wanted.logits], atol=1e-5)
    assert float(jnp.abs(own.logits - wanted.logits).max()) > 0.01


def test_precomputed_parameters_act_alike(params):
    agent = biased(TASK, BIAS, linear_decay(2.0, None))
    apply, state = jax.jit(agent.apply), agent.initial_state(AGENTS)
    plain, *_ = apply(params, SEEN, FIRST, state)
    precomputed, *_ = apply(jax.jit(agent.precompute)(params, SEEN[0]), SEEN, FIRST, state)
    np.testing.assert_allclose(precomputed, plain, atol=1e-5)


def test_no_gradient_reaches_the_frozen_policy(params):
    agent = biased(TASK, BIAS, linear_decay(2.0, None))
    batch = trajectory([[1, 9], [2, 8]], [[0, 1]], num_actions=ACTIONS)
    batch = batch._replace(initial_state=agent.initial_state(AGENTS))

    rewards = {"both": jnp.ones((1, AGENTS))}

    def loss(params):
        return batch_loss(params, batch, rewards, agent, TrainSettings()).total

    gradient = jax.jit(jax.grad(loss))(params)
    assert all((np.asarray(leaf) == 0).all() for leaf in jax.tree.leaves(gradient.fixed.policy))
    assert any((np.asarray(leaf) != 0).any() for leaf in jax.tree.leaves(gradient.learnt))


@pytest.mark.parametrize(
    ("frames", "expected"), [(None, [3, 3, 3, 3]), (100, [3.0, 1.5, 0.0, 0.0])]
)
def test_alpha_stays_or_falls_to_zero(frames, expected):
    schedule = linear_decay(3.0, frames)
    np.testing.assert_allclose([schedule(jnp.array(f)) for f in (0.0, 50, 100, 150)], expected)


def test_the_weight_of_the_frozen_logits_is_a_setting():
    transfer = TransferSettings("run", 0, NETWORK, alpha=2.0, alpha_frames=100)
    agent = make_agent(NETWORK, transfer, ACTIONS, VIEW)
    fixed = jax.jit(agent.init)(jax.random.key(0)).fixed
    assert fixed.alpha == 2.0
    assert agent.schedule(fixed, jnp.float32(50)).alpha == 1.0
