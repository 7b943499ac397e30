"""The actor-critic loss: each term summed over the steps and averaged over the batch."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from cbet_jax.config import LossSettings
from cbet_jax.vtrace import vtrace


class RewardStream(NamedTuple):
    """A reward, and the value that predicts its return."""

    value: Float[Array, "T+1 N"]  # V of all views; the last one only bootstraps
    reward: Float[Array, "T N"]  # reward of each action
    discount: Float[Array, "T N"]  # gamma, or 0 where nothing of value follows


class ActorCriticLoss(NamedTuple):
    """The loss and its terms, unweighted."""

    total: Float[Array, ""]
    policy: Float[Array, ""]
    value: Float[Array, ""]
    entropy: Float[Array, ""]  # the negative entropy, summed over the steps
    divergence: Float[Array, ""]  # from the prior; without one, the negative entropy
    rho: Float[Array, ""]  # mean importance ratio of the actions, not truncated
    kl: Float[Array, ""]  # mean KL(policy that acted || policy) of a step


def actor_critic_loss(
    logits: Float[Array, "T N actions"],
    action: Int[Array, "T N"],
    behaviour_logits: Float[Array, "T N actions"],
    streams: Sequence[RewardStream],
    settings: LossSettings,
    prior: Float[Array, "T N actions"] | None = None,
) -> ActorCriticLoss:
    """Return the V-trace actor-critic loss of a batch of sequences.

    The published loss has an entropy term, which is the divergence from the uniform policy, so a
    policy that is biased by a frozen one unlearns it while it finds no reward. With
    `settings.relative_entropy` the policy is kept near the frozen one instead: KL-regularized
    reinforcement learning with a behaviour prior (Galashov et al., 2019; Tirumala et al., 2020).
    KL(policy || prior) has no gradient where the policy is certain; KL(prior || policy), with
    `settings.forward_kl`, has, as in kickstarting (Schmitt et al., 2018).

    Args:
        logits: what the learning policy gives for the views acted on.
        action: chosen by the policy that acted.
        behaviour_logits: what the policy that acted gave.
        streams: rewards with their values; advantages and squared errors are summed.
        settings: weights of the terms.
        prior: weighted logits `[T, N, actions]` of the frozen policy, if there is one.
    """
    log_policy = jax.nn.log_softmax(logits)
    log_action = _pick(log_policy, action)
    log_behaviour = jax.nn.log_softmax(behaviour_logits)
    log_rho = jax.lax.stop_gradient(log_action) - _pick(log_behaviour, action)
    batched_vtrace = jax.vmap(vtrace, in_axes=1, out_axes=1)
    targets = [
        batched_vtrace(value[:-1], value[1:], reward, discount, log_rho)
        for value, reward, discount in streams
    ]
    advantage = reduce(add, (each.advantage for each in targets))
    errors = (
        each.value_target - one.value[:-1] for each, one in zip(targets, streams, strict=True)
    )

    policy = -(advantage * log_action)
    squared_error = reduce(add, (0.5 * error**2 for error in errors))
    negative_entropy = (jnp.exp(log_policy) * log_policy).sum(-1)
    divergence = negative_entropy
    if prior is not None:
        log_prior = jax.nn.log_softmax(prior)
        backward = negative_entropy - (jnp.exp(log_policy) * log_prior).sum(-1)
        divergence = _kl(log_prior, log_policy) if settings.forward_kl else backward
    regularizer = divergence if settings.relative_entropy else negative_entropy
    policy, value, regularizer = map(sequence_mean, (policy, squared_error, regularizer))
    return ActorCriticLoss(
        total=policy + settings.value_weight * value + settings.entropy_weight * regularizer,
        policy=policy,
        value=value,
        entropy=sequence_mean(negative_entropy),
        divergence=sequence_mean(divergence),
        rho=jnp.exp(log_rho).mean(),
        kl=_kl(log_behaviour, log_policy).mean(),
    )


def sequence_mean(terms: Float[Array, "T N"]) -> Float[Array, ""]:
    """Return terms summed over the steps and averaged over the batch.

    XLA divides a constant weight when compiling, and multiplies a swept one by the reciprocal:
    with the product written out, both give the same bits.
    """
    return terms.sum(0).sum() * (1 / terms.shape[1])


def cut_at_time_outs(
    reward: Float[Array, "T N"],
    discount: Float[Array, "T N"],
    value: Float[Array, "T N"],
    truncated: Bool[Array, "T N"],
) -> tuple[Float[Array, "T N"], Float[Array, "T N"]]:
    """Return rewards and discounts that end the value of an episode at its time-out.

    Worlds reset themselves, so the next view is another episode's. The value of what was cut off is
    added to the reward, and the discount is 0.

    Args:
        reward: of each action.
        discount: gamma, or 0 where nothing of value follows.
        value: V of what a time-out cuts off.
        truncated: whether the action ended the episode at its time limit.
    """
    bootstrap = discount * jax.lax.stop_gradient(value)
    return jnp.where(truncated, reward + bootstrap, reward), jnp.where(truncated, 0.0, discount)


def _kl(log_p: Float[Array, "T N actions"], log_q: Float[Array, "T N actions"]) -> jax.Array:
    return (jnp.exp(log_p) * (log_p - log_q)).sum(-1)


def _pick(values: Float[Array, "T N actions"], action: Int[Array, "T N"]) -> Float[Array, "T N"]:
    return jnp.take_along_axis(values, action[..., None], axis=-1)[..., 0]
