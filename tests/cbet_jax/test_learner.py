"""Losses and RMSProp against numbers computed by hand."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from cbet_jax.agent import network_agent
from cbet_jax.config import (
    AuxiliarySettings,
    LossSettings,
    NetworkSettings,
    OptimizerSettings,
    TrainSettings,
)
from cbet_jax.intrinsic.interface import Params
from cbet_jax.intrinsic.none import NONE
from cbet_jax.learner import (
    batch_loss,
    begin_learner,
    decaying_rate,
    make_optimizers,
    maximized_rewards,
    rmsprop,
    update,
)
from cbet_jax.losses import RewardStream, actor_critic_loss
from tests.support.moments import timed_out, trajectory

VIEW = (7, 7, 3)


def test_rmsprop_follows_pytorchs_formula_step_by_step():
    """The formula: s = 0.99 s + 0.01 g^2, p = p - rate g / (sqrt(s) + eps)."""
    settings = OptimizerSettings(learning_rate=0.1, decay_frames=1000)
    optimizer = rmsprop(settings, decaying_rate(settings, frames=10, update_frames=100))
    params = np.array([1.0, -2.0])
    square, state = np.zeros(2), optimizer.init(jnp.asarray(params))
    ours = jnp.asarray(params)
    for step, gradient in enumerate(np.array([[0.5, -1.0], [0.1, 0.0], [-3.0, 2.0]])):
        rate = 0.1 * (1 - step * 100 / 1000)
        square = 0.99 * square + 0.01 * gradient**2
        params = params - rate * gradient / (np.sqrt(square) + 1e-5)
        change, state = optimizer.update(jnp.asarray(gradient), state, ours)
        ours = ours + change
        np.testing.assert_allclose(ours, params, atol=1e-6)


def test_the_learning_rate_falls_to_zero_and_stays_there():
    settings = OptimizerSettings(decay_frames=200)
    optimizer = rmsprop(settings, decaying_rate(settings, frames=50, update_frames=100))
    state, params = optimizer.init(jnp.ones(())), jnp.ones(())
    sizes = []
    for _ in range(4):
        change, state = optimizer.update(jnp.ones(()), state, params)
        sizes.append(abs(float(change)))
    assert sizes[0] > sizes[1] > 0
    assert sizes[2:] == [0, 0]
    slower = decaying_rate(OptimizerSettings(1.0, decay_frames=50), frames=200, update_frames=100)
    assert slower(jnp.int32(1)) == 0.5  # a longer run's rate reaches its end


@pytest.mark.parametrize(("decay_rate", "later_step"), [(False, 1.0), (True, 0.5)])
def test_only_the_policys_learning_rate_decays_unless_asked(decay_rate, later_step):
    settings = TrainSettings(
        frames=1,
        batch=1,
        unroll=100,
        optimizer=OptimizerSettings(decay_frames=200, rms_decay=0.0),
        auxiliary=AuxiliarySettings(decay_rate=decay_rate),
    )
    for optimizer, expected in zip(make_optimizers(settings), (0.5, later_step), strict=True):
        state, gradient = optimizer.init(jnp.ones(())), jnp.ones(())
        first, state = optimizer.update(gradient, state)
        second, state = optimizer.update(gradient, state)
        np.testing.assert_allclose(second / first, expected, rtol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_gradients_are_clipped_by_their_global_norm(scale):
    optimizer = rmsprop(OptimizerSettings(), optax.constant_schedule(1.0))
    gradient = {"a": jnp.full(4, scale), "b": jnp.full(5, scale)}  # norm 3 * scale
    _, state = optimizer.update(gradient, optimizer.init(gradient), gradient)
    (square,) = [leaf for leaf in jax.tree.leaves(state) if leaf.shape == (4,)]
    clipped = min(scale, 40 / 3)
    np.testing.assert_allclose(square, 0.01 * clipped**2, rtol=1e-5)


def test_loss_of_one_step_by_hand():
    """Two actions with logits (0, 0), on policy: rho = 1, advantage = r + gamma v' - v."""
    value, reward, discount = jnp.array([[0.5], [2.0]]), jnp.array([[1.0]]), jnp.array([[0.9]])
    logits = jnp.zeros((1, 1, 2))
    settings = LossSettings(value_weight=0.5, entropy_weight=0.1)
    loss = actor_critic_loss(
        logits, jnp.array([[1]]), logits, [RewardStream(value, reward, discount)], settings
    )
    advantage = 1.0 + 0.9 * 2.0 - 0.5
    np.testing.assert_allclose(loss.policy, advantage * np.log(2), rtol=1e-6)
    np.testing.assert_allclose(loss.value, 0.5 * advantage**2, rtol=1e-6)
    np.testing.assert_allclose(loss.entropy, -np.log(2), rtol=1e-6)
    total = loss.policy + 0.5 * loss.value + 0.1 * loss.entropy
    np.testing.assert_allclose(loss.total, total, rtol=1e-6)


@pytest.mark.parametrize(("relative", "forward"), [(False, False), (True, False), (True, True)])
def test_a_policy_is_kept_near_the_uniform_or_the_frozen_one(relative, forward):
    """KL(p || q) of p = (1/2, 1/2) and q = (1/5, 4/5) is log(5/4); its gradient pulls p to q.

    KL(q || p) is the other `divergence`; its gradient is p - q.
    """
    settings = LossSettings(
        value_weight=0.0, entropy_weight=2.0, relative_entropy=relative, forward_kl=forward
    )
    prior = jnp.log(jnp.array([[[0.2, 0.8]]]))
    nothing = RewardStream(jnp.zeros((2, 1)), jnp.zeros((1, 1)), jnp.zeros((1, 1)))

    def loss(logits):
        action = jnp.zeros((1, 1), jnp.int32)
        return actor_critic_loss(logits, action, prior, [nothing], settings, prior)

    found = loss(jnp.zeros((1, 1, 2)))
    divergence = 0.2 * np.log(0.4) + 0.8 * np.log(1.6) if forward else np.log(5 / 4)
    np.testing.assert_allclose(found.divergence, divergence, rtol=1e-6)
    np.testing.assert_allclose(found.entropy, -np.log(2), rtol=1e-6)
    np.testing.assert_allclose(found.kl, 0.2 * np.log(0.4) + 0.8 * np.log(1.6), rtol=1e-6)
    np.testing.assert_allclose(found.total, 2 * (divergence if relative else -np.log(2)), 1e-6)
    towards = -jax.grad(lambda logits: loss(logits).total)(jnp.zeros((1, 1, 2)))[0, 0]
    reverse = np.log([0.2, 0.8]) - np.log([0.2, 0.8]).mean()
    expected = [-0.6, 0.6] if forward else reverse if relative else [0, 0]
    np.testing.assert_allclose(towards, expected, atol=1e-6)


@pytest.mark.parametrize(("bound", "expected"), [(None, 10.0), (1.0, 1.0), (20.0, 10.0)])
def test_a_rare_large_gradient_makes_a_step_of_ten_rates_unless_it_is_bounded(bound, expected):
    settings = OptimizerSettings(rms_epsilon=1e-12, largest_step=bound)
    optimizer = rmsprop(settings, optax.constant_schedule(1.0))
    step, _ = optimizer.update({"a": jnp.ones(4)}, optimizer.init({"a": jnp.ones(4)}))
    np.testing.assert_allclose(step["a"], np.full(4, -expected), rtol=1e-5)


def test_the_loss_is_summed_over_steps_and_averaged_over_the_batch():
    @partial(jax.jit, static_argnums=(0, 1))
    def loss(steps, sequences):
        logits = jnp.zeros((steps, sequences, 3))
        value, reward = jnp.zeros((steps + 1, sequences)), jnp.ones((steps, sequences))
        action, discount = jnp.zeros((steps, sequences), jnp.int32), jnp.zeros((steps, sequences))
        return actor_critic_loss(
            logits, action, logits, [RewardStream(value, reward, discount)], LossSettings()
        )

    np.testing.assert_allclose(loss(6, 1).total, 6 * loss(1, 1).total, rtol=1e-6)
    np.testing.assert_allclose(loss(1, 6).total, loss(1, 1).total, rtol=1e-6)


def test_each_of_two_rewards_has_a_value_and_a_discount_of_its_own():
    """One step, on policy, that ends an episode: only the intrinsic return goes on after it."""
    settings = TrainSettings(
        extrinsic_weight=1.0,
        network=NetworkSettings(2, 2, 1, 4, 1, 4, value_heads=2),
        loss=LossSettings(0.5, intrinsic_discount=0.25),
    )
    agent = network_agent(settings.network, 2, VIEW)
    state = agent.initial_state(1)
    batch = trajectory([[1], [200]], [[0]])
    steps = batch.steps._replace(terminated=jnp.array([[True]]))
    params = jax.jit(agent.init)(jax.random.key(0))
    logits, value, *_ = jax.jit(agent.apply)(params, batch.view, batch.first, state)
    chex.assert_shape(value, (2, 1, 2))
    steps = steps._replace(logits=logits[:-1])
    batch = batch._replace(steps=steps, initial_state=state)
    extrinsic, intrinsic = jnp.array([[0.5]]), jnp.array([[3.0]])
    rewards = maximized_rewards(extrinsic, intrinsic, 0.1, settings)
    np.testing.assert_allclose(rewards["extrinsic"], [[0.5]], rtol=1e-6)
    np.testing.assert_allclose(rewards["intrinsic"], [[0.3]], rtol=1e-6)
    loss = jax.jit(lambda *inputs: batch_loss(*inputs, agent, settings))(params, batch, rewards)
    advantage = np.array([0.5, 0.3 + 0.25 * value[1, 0, 1]]) - value[0, 0]
    np.testing.assert_allclose(loss.value, 0.5 * (advantage**2).sum(), rtol=1e-4)
    of_action = jax.nn.log_softmax(logits[0, 0])[0]
    np.testing.assert_allclose(loss.policy, -advantage.sum() * of_action, rtol=1e-4)


@pytest.mark.parametrize(
    ("weight", "expected"),
    [(0.0, [0.0, 0.05, 1.0, -1.0]), (1.0, [1.0, 0.25, 1.0, -1.0]), (0.5, [0.5, 0.15, 1.0, -1.0])],
)
def test_rewards_are_weighted_summed_and_clipped(weight, expected):
    intrinsic, extrinsic = jnp.array([[0.0, 0.5, 20.0, -20.0]]), jnp.array([[1.0, 0.2, 0.5, 0.0]])
    settings = TrainSettings(extrinsic_weight=weight)
    rewards = maximized_rewards(extrinsic, intrinsic, 0.1, settings)
    np.testing.assert_allclose(rewards["both"][0], expected, rtol=1e-6)


def test_a_methods_networks_are_clipped_by_themselves_and_leave_the_policy_alone():
    """The gradients are 3, 100 and 5; the second is clipped to 40, the third never used."""
    settings = TrainSettings(network=NetworkSettings(2, 2, 1, 4, 1, 4))
    agent = network_agent(settings.network, 2, VIEW)
    optimizers = make_optimizers(settings)
    batch = trajectory([[1], [2]], [[0]])._replace(initial_state=agent.initial_state(1))
    policy = jax.jit(agent.init)(jax.random.key(0))
    params = Params({"small": jnp.zeros(1), "large": jnp.zeros(1)}, {"still": jnp.zeros(1)})

    @jax.jit
    def learn(steepness):
        def reward(params, batch):
            slopes = 3 * params.learnt["small"] + 100 * params.learnt["large"]
            loss = steepness * (slopes + 5 * params.fixed["still"]).sum()
            return jnp.zeros(batch.steps.action.shape), (loss, {"own": loss})

        state = begin_learner(policy, params, optimizers)
        method = NONE._replace(reward=reward)
        return update(agent, method, optimizers, settings, state, batch)

    (steep, _), (flat, metrics) = learn(1.0), learn(0.0)
    assert metrics["own"] == 0 < metrics["entropy"]
    for name, square in (("small", 0.01 * 3**2), ("large", 0.01 * 40**2)):
        leaves = jax.tree.leaves(steep.intrinsic_optimizer[name])
        (found,) = [leaf for leaf in leaves if leaf.shape == (1,)]
        np.testing.assert_allclose(found, square, rtol=1e-5)
        assert float(steep.intrinsic.learnt[name][0]) < 0
    assert float(steep.intrinsic.fixed["still"][0]) == 0
    chex.assert_trees_all_equal(steep.policy, flat.policy)


@pytest.mark.parametrize(("target", "learns"), [(None, True), (1.0, True), (0.1, False)])
def test_a_batch_is_skipped_if_the_policy_has_left_the_one_that_acted(target, learns):
    settings = TrainSettings(
        network=NetworkSettings(2, 2, 1, 4, 1, 4), optimizer=OptimizerSettings(target_kl=target)
    )
    agent = network_agent(settings.network, 2, VIEW)
    batch = trajectory([[1], [2]], [[0]])._replace(initial_state=agent.initial_state(1))
    acted = batch.steps._replace(logits=jnp.array([[[0.0, 3.0]]]))

    @jax.jit
    def learn(key):
        policy, optimizers = agent.init(key), make_optimizers(settings)
        state = begin_learner(policy, Params({}, {}), optimizers)
        after = update(agent, NONE, optimizers, settings, state, batch._replace(steps=acted))
        return state, *after

    before, after, metrics = learn(jax.random.key(0))
    assert 0.1 < metrics["policy_kl"] < 1
    assert (metrics["step_norm"] > 0) == learns
    for name in ("policy", "policy_optimizer"):
        same = jax.tree.map(np.array_equal, getattr(before, name), getattr(after, name))
        assert jax.tree.all(same) != learns
    assert metrics["gradient_norm"] > 0


def test_an_update_learns_from_weighted_rewards_of_the_adapted_method_and_final_views():
    settings = TrainSettings(
        extrinsic_weight=0.5,
        network=NetworkSettings(2, 2, 1, 4, 1, 4),
        loss=LossSettings(bootstrap="final"),
    )
    agent = network_agent(settings.network, 2, VIEW)
    batch = trajectory([[1], [2]], [[0]], extrinsic_reward=np.array([[0.5]], np.float32))
    batch = timed_out(batch, [[True]], [[200]])._replace(initial_state=agent.initial_state(1))
    frozen = jnp.log(jnp.array([[[0.2, 0.8]]]))
    batch = batch._replace(steps=batch.steps._replace(prior=frozen))
    method = NONE._replace(
        coefficient=0.1,
        adapt=lambda params, *_: params._replace(fixed={"scale": params.fixed["scale"] + 1}),
        reward=lambda params, batch: jnp.full(batch.steps.action.shape, params.fixed["scale"]),
    )

    @jax.jit
    def learn(key):
        policy, optimizers = agent.init(key), make_optimizers(settings)
        state = begin_learner(policy, Params({}, {"scale": jnp.float32(2)}), optimizers)
        after, metrics = update(agent, method, optimizers, settings, state, batch)
        rewards = {"both": jnp.full((1, 1), 0.1 * 3 + 0.5 * 0.5)}
        return after, metrics, batch_loss(policy, batch, rewards, agent, settings)

    after, metrics, loss = learn(jax.random.key(0))
    np.testing.assert_allclose(metrics["value_loss"], loss.value, rtol=1e-5)
    np.testing.assert_allclose(metrics["policy_loss"], loss.policy, rtol=1e-5)
    np.testing.assert_allclose(metrics["entropy"], -loss.entropy / settings.unroll, rtol=1e-5)
    np.testing.assert_allclose(metrics["divergence"], loss.divergence / settings.unroll, rtol=1e-5)
    assert loss.divergence > 0
    assert metrics["intrinsic_reward"] == after.intrinsic.fixed["scale"] == 3
