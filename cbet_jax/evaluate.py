"""Playing with a fixed policy and no learning (paper, section 4, "evaluation metrics")."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from cbet_jax.config import NetworkSettings
from cbet_jax.networks import PolicyNetwork, fold, run, sample_actions, zero_state
from cbet_jax.rollout import ActorState, begin_actor, follow
from envs.types import World


class Episodes(NamedTuple):
    """What one policy did in one episode of each world."""

    success: Bool[Array, " N"]
    interactions: Int[Array, " N"]  # unique ones
    length: Int[Array, " N"]  # steps
    extrinsic_return: Float[Array, " N"]
    actions: Int[Array, "N actions"]  # how often each was chosen


class _Play(NamedTuple):
    actor: ActorState
    episodes: Episodes
    over: Bool[Array, " N"]  # the world's one episode has ended
    key: PRNGKeyArray


def evaluate(
    world: World,
    network: NetworkSettings,
    params: Any,
    world_key: PRNGKeyArray,
    action_key: PRNGKeyArray,
) -> Episodes:
    """Plays one episode in each world with each of several policies, actions sampled.

    All policies play the same levels. One episode a world, so that short episodes do not
    crowd out long ones.

    Args:
        world: must not explore, so that success ends an episode.
        network: the policy's network.
        params: of the policies, arrays with a leading axis `[policies]`.
        world_key: draws the levels.
        action_key: draws the actions.

    Returns:
        Episodes with a leading axis `[policies]`.
    """
    policy = PolicyNetwork(network, world.num_actions)

    def play_all(world_key: PRNGKeyArray, action_key: PRNGKeyArray, params: Any) -> Episodes:
        return jax.lax.map(partial(_evaluate, policy, world, world_key, action_key), params)

    return jax.jit(play_all)(world_key, action_key, params)


def evaluate_uniform(world: World, world_key: PRNGKeyArray, action_key: PRNGKeyArray) -> Episodes:
    """Plays one episode in each world, every action with the same chance."""
    return jax.jit(partial(_evaluate, None, world))(world_key, action_key, ())


def _evaluate(
    network: PolicyNetwork | None,
    world: World,
    world_key: PRNGKeyArray,
    action_key: PRNGKeyArray,
    params: Any,
) -> Episodes:
    nothing = jnp.zeros(world.num_worlds, jnp.int32)
    settings = network.settings if network else NetworkSettings(lstm_layers=0)
    start = _Play(
        actor=begin_actor(world_key, world, (), zero_state(settings, world.num_worlds)),
        episodes=Episodes(
            success=nothing > 0,
            interactions=nothing,
            length=nothing,
            extrinsic_return=jnp.zeros(world.num_worlds),
            actions=jnp.zeros((world.num_worlds, world.num_actions), jnp.int32),
        ),
        over=nothing > 0,
        key=action_key,
    )
    if network is not None:
        params = fold(network, params, start.actor.step.view)
    step = partial(_step, network, world, params)
    return jax.lax.while_loop(lambda play: ~play.over.all(), step, start).episodes


def _step(network: PolicyNetwork | None, world: World, params: Any, play: _Play) -> _Play:
    key, action_key = jax.random.split(play.key)
    actor = play.actor
    if network is None:
        logits = jnp.zeros((world.num_worlds, world.num_actions))
    else:
        view, first = actor.step.view[None], actor.first[None]
        (logits,), _, recurrent = run(network, params, view, first, actor.recurrent)
        actor = actor._replace(recurrent=recurrent)
    action = sample_actions(action_key, logits)
    world_state, step = world.step(actor.world, action)
    actor, events = follow(actor._replace(world=world_state), step)

    finishes = events.ended & ~play.over
    keep = lambda new, old: jnp.where(finishes, new, old)  # noqa: E731
    chosen = jax.nn.one_hot(action, world.num_actions, dtype=jnp.int32)
    episodes = Episodes(
        success=keep(events.episode_success, play.episodes.success),
        interactions=keep(events.episode_interactions, play.episodes.interactions),
        length=keep(events.episode_length, play.episodes.length),
        extrinsic_return=keep(events.episode_return, play.episodes.extrinsic_return),
        actions=play.episodes.actions + chosen * ~play.over[:, None],
    )
    return _Play(actor, episodes, play.over | events.ended, key)
