"""Acting: one step of every world, and sequences of steps inside one scan."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PRNGKeyArray, Shaped

from cbet_jax.agent import Agent, AgentParams
from cbet_jax.episode_records import CurrentEpisodes
from cbet_jax.intrinsic.interface import Experience, Intrinsic, Memory, Params
from cbet_jax.networks.policy_network import sample_actions
from cbet_jax.types import ArrayTree, RecurrentState, Trajectory, Transition
from envs.types import Step, World


class ActorState(NamedTuple):
    """The state of the actors; nothing in it is learnt."""

    world: ArrayTree  # state of the worlds
    step: Step  # the last step; its policy_view is acted on next
    first: Bool[Array, " N"]  # whether the agent's state is zeroed before it sees this view
    recurrent: RecurrentState  # state of the agent


class Played(NamedTuple):
    """What a rollout returns."""

    actor: ActorState  # state after the last step
    memory: Memory  # memory of the intrinsic method after the last step
    trajectory: Trajectory
    episodes: CurrentEpisodes  # episode of each step, arrays [T, N]


def begin_actor(agent: Agent, world: World, beginning: Any) -> ActorState:
    """Return actors at the first moment of their first episode.

    Args:
        agent: acts.
        world: the worlds.
        beginning: what `world.init` takes: a key, or levels.
    """
    first = jnp.ones(world.num_worlds, bool)
    return ActorState(*world.init(beginning), first, agent.initial_state(world.num_worlds))


def rollout(
    agent: Agent,
    world: World,
    intrinsic: Intrinsic,
    params: AgentParams,
    intrinsic_params: Params,
    actor: ActorState,
    memory: Memory,
    key: PRNGKeyArray,
    unroll: int,
) -> Played:
    """Play `unroll` steps in every world with one policy; then the intrinsic method observes them.

    Args:
        agent: acts.
        world: the worlds, which keep records (`with_episode_records`).
        intrinsic: the method.
        params: the agent's.
        intrinsic_params: the method's.
        actor: the state before the first step.
        memory: the method's before the first step.
        key: draws actions, and what the method draws.
        unroll: number of steps.
    """
    begin_key, scan_key = jax.random.split(key)
    memory = intrinsic.begin_rollout(memory, begin_key, actor.step)
    keys = jax.vmap(jax.random.split)(jax.random.split(scan_key, unroll))
    action_keys, observe_keys = keys[:, 0], keys[:, 1]
    params = agent.precompute(params, actor.step.policy_view)

    def play_step(before: ActorState, key: PRNGKeyArray) -> tuple[ActorState, Any]:
        after, transition = act(agent, world, params, before, key)
        return after, (transition, after.step, after.first, after.world.episodes)

    last, (transitions, steps, first, episodes) = jax.lax.scan(play_step, actor, action_keys)
    view = _joined(actor.step.view, steps.view)
    final_view = transitions.final_view if intrinsic.final_views else None
    experience = Experience(view[:-1], transitions.action, steps._replace(final_view=final_view))
    memory, signal = intrinsic.observe(intrinsic_params, memory, observe_keys, experience)
    trajectory = Trajectory(
        view=view,
        first=_joined(actor.first, first),
        steps=transitions,
        signal=signal,
        initial_state=actor.recurrent,
        other_view=jax.tree.map(_joined, actor.step.other_view, steps.other_view),
    )
    return Played(last, memory, trajectory, episodes)


def _joined(first: Shaped[Array, " *one"], later: Shaped[Array, "T *one"]) -> Array:
    return jnp.concatenate([first[None], later])


def act(
    agent: Agent, world: World, params: AgentParams, actor: ActorState, key: PRNGKeyArray
) -> tuple[ActorState, Transition]:
    """Play one step in every world: choose actions, then move the worlds.

    Training, evaluation and `watch` all step through this function. The returned actor's `step`
    has the next views; the final ones are in the transition.

    Args:
        agent: acts.
        world: the worlds.
        params: the agent's, faster if precomputed.
        actor: the state before the step.
        key: draws the actions.
    """
    view, first = actor.step.policy_view[None], actor.first[None]
    outputs = agent.apply(params, view, first, actor.recurrent)
    logits, prior = jax.tree.map(lambda leaf: leaf[0], (outputs.logits, outputs.prior))
    action = sample_actions(key, logits)
    state, step = world.step(actor.world, action)
    transition = Transition(
        action=action,
        logits=logits,
        extrinsic_reward=step.reward,
        terminated=step.terminated,
        truncated=step.truncated,
        prior=prior,
        final_view=step.final_view,
        other_final_view=step.other_final_view,
    )
    # As in the published code, success zeroes the recurrent state, too, even while exploring,
    # where the episode continues.
    first = step.ended | step.success
    step = step._replace(final_view=None, other_final_view=None)
    return ActorState(state, step, first, outputs.state), transition
