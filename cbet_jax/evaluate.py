"""Evaluation: fixed policies play without learning (paper, section 4, "evaluation metrics")."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from cbet_jax.agent import Agent, AgentParams, uniform
from cbet_jax.rollout import ActorState, act, begin_actor
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


# Of the parameters of several policies, arrays [policies, ...], of a key that draws the levels, and
# of a key that draws the actions.
type Evaluator = Callable[[AgentParams, PRNGKeyArray, PRNGKeyArray], Episodes]


def make_evaluator(world: World, agent: Agent) -> Evaluator:
    """Return the compiled function that plays one episode in each world, actions sampled.

    Every policy plays the same levels. Each world counts one episode only: otherwise short
    episodes would outnumber long ones.

    Args:
        world: must not explore, so success ends an episode.
        agent: that acts.

    Returns:
        A function of the policies' parameters `[policies, ...]`, of a key that draws the levels,
        and of a key that draws the actions. It returns episodes `[policies, N]`.
    """

    def play_all(
        params: AgentParams, world_key: PRNGKeyArray, action_key: PRNGKeyArray
    ) -> Episodes:
        return jax.lax.map(partial(_evaluate, agent, world, world_key, action_key), params)

    return jax.jit(play_all)


def evaluate_uniform(world: World, world_key: PRNGKeyArray, action_key: PRNGKeyArray) -> Episodes:
    """Play one episode in each world, every action with the same chance."""
    play = partial(_evaluate, uniform(world.num_actions), world)
    return jax.jit(play)(world_key, action_key, AgentParams(()))


def _evaluate(
    agent: Agent,
    world: World,
    world_key: PRNGKeyArray,
    action_key: PRNGKeyArray,
    params: AgentParams,
) -> Episodes:
    nothing = jnp.zeros(world.num_worlds, jnp.int32)
    start = _Play(
        actor=begin_actor(agent, world, *world.init(world_key), memory=()),
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
    params = agent.precompute(params, start.actor.step.view)
    step = partial(_step, agent, world, params)
    return jax.lax.while_loop(lambda play: ~play.over.all(), step, start).episodes


def _step(agent: Agent, world: World, params: AgentParams, play: _Play) -> _Play:
    """Play one step, and keep the results of the episodes that it ends."""
    key, action_key = jax.random.split(play.key)
    actor, transition, events = act(agent, world, params, play.actor, action_key)
    chosen = jax.nn.one_hot(transition.action, world.num_actions, dtype=jnp.int32)
    ends = events.ended & ~play.over

    def keep(new: Array, old: Array) -> Array:
        return jnp.where(ends, new, old)

    episodes = Episodes(
        success=keep(events.episode_success, play.episodes.success),
        interactions=keep(events.episode_interactions, play.episodes.interactions),
        length=keep(events.episode_length, play.episodes.length),
        extrinsic_return=keep(events.episode_return, play.episodes.extrinsic_return),
        actions=play.episodes.actions + chosen * ~play.over[:, None],
    )
    return _Play(actor, episodes, play.over | events.ended, key)
