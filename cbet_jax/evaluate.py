"""Evaluation: fixed policies play without learning (paper, section 4.1, "evaluation metrics")."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from cbet_jax.agent import Agent, AgentParams, uniform
from cbet_jax.episode_records import CurrentEpisodes, with_episode_records
from cbet_jax.rollout import ActorState, act, begin_actor
from envs.errors import UnsupportedEnvironment
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
    counted: CurrentEpisodes  # the world's one episode, up to its end
    actions: Int[Array, "N actions"]  # how often each was chosen in it
    over: Bool[Array, " N"]  # it has ended
    key: PRNGKeyArray
    steps: Int[Array, ""]  # played


# (parameters [policies, ...], what `World.init` takes (a key that draws the levels), key that
# draws the actions) -> episodes [policies, N]
type Evaluator = Callable[[AgentParams, Any, PRNGKeyArray], Episodes]

NOTHING_LEARNT = AgentParams(np.zeros(1, np.float32))  # parameters of a uniform policy


def make_evaluator(world: World, agent: Agent) -> Evaluator:
    """Return the compiled function that plays one episode in each world, actions sampled.

    Every policy plays the same levels. Each world counts one episode only: otherwise short
    episodes would outnumber long ones.

    Args:
        world: must not explore, so success ends an episode.
        agent: acts.

    Raises:
        UnsupportedEnvironment: when called: an episode goes on after `world.max_steps`.
    """
    play = jax.jit(partial(_evaluate, agent, with_episode_records(world)))

    def play_each(params: AgentParams, beginning: Any, action_key: PRNGKeyArray) -> Episodes:
        params = jax.device_get(params)
        policies = len(jax.tree.leaves(params)[0])
        # One by one: compiled once, the program plays any number of policies.
        played = [
            play(jax.tree.map(lambda leaf, i=i: leaf[i], params), beginning, action_key)
            for i in range(policies)
        ]
        each, over = jax.tree.map(lambda *leaves: np.stack(leaves), *jax.device_get(played))
        if not over.all():
            why = f"an episode goes on after max_steps, {world.max_steps}: see `cbet check-world`"
            raise UnsupportedEnvironment(" ".join(world.environments), why)
        return each

    return play_each


def evaluate_uniform(world: World, beginning: Any, action_key: PRNGKeyArray) -> Episodes:
    """Play one episode in each world with uniformly random actions."""
    play = make_evaluator(world, uniform(world.num_actions))
    return jax.tree.map(lambda leaf: leaf[0], play(NOTHING_LEARNT, beginning, action_key))


def _evaluate(
    agent: Agent, world: World, params: AgentParams, beginning: Any, action_key: PRNGKeyArray
) -> tuple[Episodes, Bool[Array, " N"]]:
    """Return the episodes, and which have ended: all, if the world keeps its time limit."""
    actor = begin_actor(agent, world, beginning)
    never = jnp.zeros(world.num_worlds, bool)
    unchosen = jnp.zeros((world.num_worlds, world.num_actions), jnp.int32)
    start = _Play(actor, actor.world.episodes, unchosen, never, action_key, jnp.int32(0))
    params = agent.precompute(params, actor.step.policy_view)
    step = partial(_step, agent, world, params)

    def goes_on(play: _Play) -> Bool[Array, ""]:
        return ~play.over.all() & (play.steps < world.max_steps)

    end = jax.lax.while_loop(goes_on, step, start)
    _, _, success, interactions, length, extrinsic_return = end.counted
    return Episodes(success, interactions, length, extrinsic_return, end.actions), end.over


def _step(agent: Agent, world: World, params: AgentParams, play: _Play) -> _Play:
    """Play one step, and follow the episodes that go on."""
    key, action_key = jax.random.split(play.key)
    actor, transition = act(agent, world, params, play.actor, action_key)
    chosen = jax.nn.one_hot(transition.action, world.num_actions, dtype=jnp.int32)
    now = actor.world.episodes
    counted = jax.tree.map(partial(jnp.where, play.over), play.counted, now)
    actions = play.actions + chosen * ~play.over[:, None]
    return _Play(actor, counted, actions, play.over | now.ended, key, play.steps + 1)
