"""One update (loss of a batch of sequences, gradient, RMSProp step), and the optimizers."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, ArrayLike, Float

from cbet_jax.agent import Agent, AgentParams, apply_with_final_views
from cbet_jax.config import OptimizerSettings, TrainSettings
from cbet_jax.intrinsic.interface import Intrinsic, Loss, Params, Reward
from cbet_jax.losses import ActorCriticLoss, RewardStream, actor_critic_loss, cut_at_time_outs
from cbet_jax.types import ArrayTree, Metrics, SameType, Trajectory, joined, unchanged

EXTRINSIC, INTRINSIC, BOTH = "extrinsic", "intrinsic", "both"  # names of rewards and values


class LearnerState(NamedTuple):
    """The networks of the policy and of the intrinsic method, each with its own optimizer."""

    policy: ArrayTree  # learnt
    intrinsic: Params
    policy_optimizer: ArrayTree
    intrinsic_optimizer: dict[str, ArrayTree]  # one for each network that learns
    fixed: ArrayTree = ()  # part of the policy that does not learn

    @property
    def agent(self) -> AgentParams:
        """The policy's parameters, learnt and fixed."""
        return AgentParams(self.policy, self.fixed)


class Optimizers(NamedTuple):
    """The optimizers of a run."""

    policy: optax.GradientTransformation
    networks: optax.GradientTransformation  # updates each of the intrinsic method's networks


def make_optimizers(settings: TrainSettings) -> Optimizers:
    """Return the optimizers of a run.

    The policy's learning rate decays linearly. The learning rate of the intrinsic method's
    networks is constant, as in the published code, unless `auxiliary.decay_rate` is set.
    """
    optimizer = settings.optimizer
    decaying = decaying_rate(optimizer, settings.frames, settings.batch * settings.unroll)
    constant = optax.constant_schedule(optimizer.learning_rate)
    networks_rate = decaying if settings.auxiliary.decay_rate else constant
    return Optimizers(rmsprop(optimizer, decaying), rmsprop(optimizer, networks_rate))


def decaying_rate(settings: OptimizerSettings, frames: int, update_frames: int) -> optax.Schedule:
    """Return the learning rate after each number of updates.

    Args:
        settings: the initial rate, and `decay_frames`.
        frames: length of the run; the rate reaches 0 after max(frames, decay_frames).
        update_frames: frames learnt from in each update.
    """
    end = max(frames, settings.decay_frames)

    def rate(update: Array) -> Float[Array, ""]:
        return settings.learning_rate * jnp.maximum(1.0 - update * (update_frames / end), 0.0)

    return rate


def rmsprop(settings: OptimizerSettings, rate: optax.Schedule) -> optax.GradientTransformation:
    """Return an optimizer that clips by global norm, then applies PyTorch's RMSProp.

    RMSProp divides a gradient by the root mean square of about the last 1 / (1 - `rms_decay`) ones.
    Where little is left to learn, noise soon makes steps as large as gradients made before, and one
    large gradient a step of (1 - `rms_decay`) ** -0.5 learning rates in all parameters. A longer
    memory keeps the steps of noise small, and `largest_step` bounds the large ones, as Adafactor
    does (Shazeer & Stern, 2018, section 6).
    """
    step = [optax.scale_by_rms(settings.rms_decay, settings.rms_epsilon, 0.0, eps_in_sqrt=False)]
    if settings.largest_step is not None:
        step.append(optax.clip_by_block_rms(settings.largest_step))
    clip = optax.clip_by_global_norm(settings.max_gradient_norm)
    return optax.chain(clip, *step, optax.scale_by_learning_rate(rate))


def begin_learner(params: AgentParams, intrinsic: Params, optimizers: Optimizers) -> LearnerState:
    """Return the state before the first update."""
    policy, fixed = params
    each = {name: optimizers.networks.init(network) for name, network in intrinsic.learnt.items()}
    return LearnerState(policy, intrinsic, optimizers.policy.init(policy), each, fixed)


def update(
    agent: Agent,
    intrinsic: Intrinsic,
    optimizers: Optimizers,
    settings: TrainSettings,
    learner: LearnerState,
    batch: Trajectory,
    mean: SameType = unchanged,
) -> tuple[LearnerState, Metrics]:
    """Learn once from a batch of sequences: the policy, then the method's own networks.

    Args:
        agent: its policy learns.
        intrinsic: its reward is learnt from.
        optimizers: update the policy and the method's networks.
        settings: weights of rewards and losses.
        learner: the state before the update.
        batch: the sequences.
        mean: averages gradients and losses over the devices that share the batch.

    Returns:
        The learner after the update, and metrics.
    """
    steps = batch.steps if intrinsic.final_views else batch.steps._replace(final_view=None)
    seen = batch._replace(steps=steps)
    learner = learner._replace(intrinsic=intrinsic.adapt(learner.intrinsic, seen, mean))
    reward, networks_loss, networks_gradient = rewarded(intrinsic, learner.intrinsic, seen)
    extrinsic = batch.steps.extrinsic_reward
    rewards = maximized_rewards(extrinsic, reward, intrinsic.coefficient, settings)

    def policy_loss(policy: ArrayTree) -> tuple[Float[Array, ""], ActorCriticLoss]:
        loss = batch_loss(AgentParams(policy, learner.fixed), batch, rewards, agent, settings)
        return loss.total, loss

    gradient, loss = mean(jax.grad(policy_loss, has_aux=True)(learner.policy))
    policy, policy_optimizer = _apply(
        optimizers.policy, gradient, learner.policy, learner.policy_optimizer
    )
    if (target := settings.optimizer.target_kl) is not None:
        before = learner.policy, learner.policy_optimizer
        choose = partial(jnp.where, loss.kl <= target)
        policy, policy_optimizer = jax.tree.map(choose, (policy, policy_optimizer), before)
    (network_loss, terms), networks_gradient = mean((networks_loss, networks_gradient))
    learnt, network_optimizers = update_networks(
        optimizers.networks,
        networks_gradient,
        learner.intrinsic.learnt,
        learner.intrinsic_optimizer,
    )
    networks = learner.intrinsic._replace(learnt=learnt)
    metrics = {
        "intrinsic_reward": mean(reward.mean()),
        "loss": loss.total + network_loss,
        "policy_loss": loss.policy,
        "value_loss": loss.value,
        "entropy": -loss.entropy / settings.unroll,
        "importance_ratio": loss.rho,
        "policy_kl": loss.kl,
        "gradient_norm": optax.tree.norm(gradient),
        "step_norm": optax.tree.norm(jax.tree.map(jnp.subtract, policy, learner.policy)),
    }
    if batch.steps.prior is not None:
        metrics["divergence"] = loss.divergence / settings.unroll
    learner = LearnerState(policy, networks, policy_optimizer, network_optimizers, learner.fixed)
    return learner, joined(terms, metrics)


def rewarded(
    intrinsic: Intrinsic, params: Params, batch: Trajectory
) -> tuple[Reward, Loss, dict[str, ArrayTree]]:
    """Return the method's reward, the loss of its networks, and the gradient of the loss."""

    def loss_of(learnt: dict[str, ArrayTree]) -> tuple[Float[Array, ""], tuple[Metrics, Reward]]:
        reward, (loss, terms) = intrinsic.reward_and_loss(params._replace(learnt=learnt), batch)
        return loss, (terms, reward)

    (loss, (terms, reward)), gradient = jax.value_and_grad(loss_of, has_aux=True)(params.learnt)
    return jax.lax.stop_gradient(reward), (loss, terms), gradient


def update_networks(
    optimizer: optax.GradientTransformation,
    gradients: dict[str, ArrayTree],
    networks: dict[str, ArrayTree],
    states: dict[str, ArrayTree],
) -> tuple[dict[str, ArrayTree], dict[str, ArrayTree]]:
    """Update an intrinsic method's networks; each gradient is clipped separately.

    Returns:
        The networks and the optimizer's states, by the network's name.
    """
    updated = {
        name: _apply(optimizer, gradient, networks[name], states[name])
        for name, gradient in gradients.items()
    }
    learnt = {name: network for name, (network, _) in updated.items()}
    return learnt, {name: state for name, (_, state) in updated.items()}


def maximized_rewards(
    extrinsic: Float[Array, "T N"],
    intrinsic: Float[Array, "T N"],
    coefficient: Float[ArrayLike, ""],
    settings: TrainSettings,
) -> dict[str, Float[Array, "T N"]]:
    """Return the rewards that the policy maximizes, weighted and clipped, by the value's name.

    One value head predicts the return of their sum; two heads predict one return each.

    Args:
        extrinsic: reward of the task.
        intrinsic: reward of the method.
        coefficient: weight of the intrinsic reward.
        settings: weight of the extrinsic reward, and number of value heads.
    """
    of_method, of_task = coefficient * intrinsic, settings.extrinsic_weight * extrinsic
    if settings.network.value_heads == 1:
        return by_name(jnp.clip(of_method + of_task, -1.0, 1.0))
    return by_name(jnp.clip(jnp.stack([of_task, of_method], -1), -1.0, 1.0))


def by_name(numbers: Float[Array, "T N *heads"]) -> dict[str, Float[Array, "T N"]]:
    """Name rewards or values: one for both, or the two along the last axis."""
    if numbers.ndim == 2:
        return {BOTH: numbers}
    return {EXTRINSIC: numbers[..., 0], INTRINSIC: numbers[..., 1]}


def batch_loss(
    params: AgentParams,
    batch: Trajectory,
    rewards: dict[str, Float[Array, "T N"]],
    agent: Agent,
    settings: TrainSettings,
) -> ActorCriticLoss:
    """Return the actor-critic loss of a batch of sequences.

    Args:
        params: the agent's.
        batch: the sequences.
        rewards: what `maximized_rewards` returns.
        agent: its policy learns.
        settings: `settings.loss` weights the terms.
    """
    batch = batch.as_policies_see()
    steps, loss = batch.steps, settings.loss
    if loss.bootstrap == "final":
        outputs, cut_off = apply_with_final_views(agent, params, batch)
    else:
        outputs = agent.apply(params, batch.view, batch.first, batch.initial_state, steps.prior)
        cut_off = outputs.value[:-1]
    ending = loss.discount * (1.0 - steps.terminated)

    def stream(name: str, value: Float[Array, "views N"]) -> RewardStream:
        if name == INTRINSIC:  # its return goes on past an episode's end
            endless = jnp.full_like(ending, loss.intrinsic_discount)
            return RewardStream(value, rewards[name], endless)
        if loss.bootstrap == "next":
            return RewardStream(value, rewards[name], ending)
        worth = by_name(cut_off)[name]
        return RewardStream(value, *cut_at_time_outs(rewards[name], ending, worth, steps.truncated))

    streams = [stream(*named) for named in by_name(outputs.value).items()]
    logits = outputs.logits[: len(steps.action)]
    return actor_critic_loss(logits, steps.action, steps.logits, streams, loss, steps.prior)


def _apply(
    optimizer: optax.GradientTransformation,
    gradient: ArrayTree,
    params: ArrayTree,
    state: ArrayTree,
) -> tuple[ArrayTree, ArrayTree]:
    """Return the parameters and the optimizer's state after one step."""
    steps, state = optimizer.update(gradient, state, params)
    return optax.apply_updates(params, steps), state
