"""One update: loss of a batch of sequences, gradient, RMSProp step."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from cbet_jax.agent import Agent, AgentParams
from cbet_jax.config import OptimizerSettings, TrainSettings
from cbet_jax.intrinsic.types import Intrinsic, Params
from cbet_jax.losses import ActorCriticLoss, actor_critic_loss, cut_at_time_outs
from cbet_jax.types import SameType, Trajectory, unchanged


class LearnerState(NamedTuple):
    """What learning changes: the policy and the intrinsic method's networks, each by itself."""

    policy: Any
    intrinsic: Params
    policy_optimizer: Any
    intrinsic_optimizer: dict[str, Any]  # one for each network that learns
    fixed: Any = ()  # what the policy is computed with, but no update changes

    @property
    def agent(self) -> AgentParams:
        """The policy's parameters, learnt and fixed."""
        return AgentParams(self.policy, self.fixed)


def make_optimizer(
    settings: OptimizerSettings, frames: int, update_frames: int
) -> optax.GradientTransformation:
    """Returns clipping by global norm, then RMSProp with a linearly decaying rate.

    Args:
        settings: rates and constants.
        frames: length of the run; the rate reaches 0 after max(frames, decay_frames).
        update_frames: frames learnt from in each update.
    """
    end = max(frames, settings.decay_frames)

    def rate(update: Array) -> Float[Array, ""]:
        return settings.learning_rate * jnp.maximum(1.0 - update * (update_frames / end), 0.0)

    return optax.chain(
        optax.clip_by_global_norm(settings.max_gradient_norm),
        optax.scale_by_rms(settings.rms_decay, settings.rms_epsilon, 0.0, eps_in_sqrt=False),
        optax.scale_by_learning_rate(rate),
    )


def begin_learner(
    params: AgentParams, intrinsic: Params, optimizer: optax.GradientTransformation
) -> LearnerState:
    """Returns the state before the first update; every network has an optimizer of its own."""
    each = {name: optimizer.init(network) for name, network in intrinsic.learnt.items()}
    policy, fixed = params
    return LearnerState(policy, intrinsic, optimizer.init(policy), each, fixed)


def update(
    state: LearnerState,
    batch: Trajectory,
    agent: Agent,
    intrinsic: Intrinsic,
    optimizer: optax.GradientTransformation,
    settings: TrainSettings,
    mean: SameType = unchanged,
) -> tuple[LearnerState, dict[str, Float[Array, ""]]]:
    """Learns once from a batch of sequences: the policy, then the method's own networks.

    Args:
        state: before the update.
        batch: the sequences.
        agent: whose policy learns.
        intrinsic: the method.
        optimizer: of every network.
        settings: of the run.
        mean: of gradients and losses over all devices that learn from a part of the batch.

    Returns:
        The state after the update, and metrics.
    """
    reward = intrinsic_reward(state.intrinsic, batch, intrinsic)
    total = total_reward(reward, batch.steps.extrinsic_reward, intrinsic.coefficient, settings)

    def policy_loss(params: Any) -> tuple[Float[Array, ""], ActorCriticLoss]:
        loss = batch_loss(AgentParams(params, state.fixed), batch, total, agent, settings)
        return loss.total, loss

    gradient, loss = mean(jax.grad(policy_loss, has_aux=True)(state.policy))
    policy, policy_optimizer = _apply(optimizer, gradient, state.policy, state.policy_optimizer)
    auxiliary, auxiliary_optimizer, auxiliary_loss, terms = _update_auxiliary(
        state.intrinsic, state.intrinsic_optimizer, batch, intrinsic, optimizer, mean
    )
    metrics = {
        "intrinsic_reward": mean(reward.mean()),
        "loss": loss.total + auxiliary_loss,
        "policy_loss": loss.policy,
        "value_loss": loss.value,
        "entropy": -loss.entropy / settings.unroll,
        "gradient_norm": optax.tree.norm(gradient),
        **terms,
    }
    state = LearnerState(policy, auxiliary, policy_optimizer, auxiliary_optimizer, state.fixed)
    return state, metrics


def _update_auxiliary(
    params: Params,
    states: dict[str, Any],
    batch: Trajectory,
    intrinsic: Intrinsic,
    optimizer: optax.GradientTransformation,
    mean: SameType,
) -> tuple[Params, dict[str, Any], Float[Array, ""], dict[str, Float[Array, ""]]]:
    """Clips and steps each of the method's networks by itself, by the gradient of one loss."""

    def loss_of(learnt: dict[str, Any]) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        return intrinsic.loss(params._replace(learnt=learnt), batch)

    found = mean(jax.value_and_grad(loss_of, has_aux=True)(params.learnt))
    (loss, terms), gradients = found
    stepped = {
        name: _apply(optimizer, gradient, params.learnt[name], states[name])
        for name, gradient in gradients.items()
    }
    learnt = {name: network for name, (network, _) in stepped.items()}
    states = {name: state for name, (_, state) in stepped.items()}
    return params._replace(learnt=learnt), states, loss, terms


def intrinsic_reward(params: Any, batch: Trajectory, intrinsic: Intrinsic) -> Float[Array, "T N"]:
    """Returns the method's reward, before the coefficient; nothing learns through it."""
    return jax.lax.stop_gradient(intrinsic.reward(params, batch))


def total_reward(
    intrinsic: Float[Array, "T N"],
    extrinsic: Float[Array, "T N"],
    coefficient: float,
    settings: TrainSettings,
) -> Float[Array, "T N"]:
    """Returns what the policy is to maximize: both rewards, weighted, their sum clipped."""
    total = coefficient * intrinsic + settings.extrinsic_weight * extrinsic
    return jnp.clip(total, -1.0, 1.0)


def batch_loss(
    params: AgentParams,
    batch: Trajectory,
    reward: Float[Array, "T N"],
    agent: Agent,
    settings: TrainSettings,
) -> ActorCriticLoss:
    """Returns the actor-critic loss of `params` on a batch of sequences."""
    logits, value, _ = agent.apply(params, batch.view, batch.first, batch.initial_state)
    discount = settings.loss.discount * (1.0 - batch.steps.terminated)
    if settings.loss.cut_at_time_outs:
        reward, discount = cut_at_time_outs(reward, discount, value[:-1], batch.steps.truncated)
    return actor_critic_loss(
        logits[:-1],
        value,
        batch.steps.action,
        batch.steps.logits,
        reward,
        discount,
        settings.loss,
    )


def _apply(
    optimizer: optax.GradientTransformation, gradient: Any, params: Any, state: Any
) -> tuple[Any, Any]:
    steps, state = optimizer.update(gradient, state, params)
    return optax.apply_updates(params, steps), state
