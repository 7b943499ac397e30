"""Acting: one step of every world, and sequences of steps inside one scan."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from cbet_jax.agent import Agent, AgentParams
from cbet_jax.counts.table import CountTable, empty_tables, reset, visit
from cbet_jax.intrinsic.types import Experience, Intrinsic, Memory, Params, Signal
from cbet_jax.networks.policy_network import sample_actions
from cbet_jax.packing import scan
from cbet_jax.types import ArrayTree, RecurrentState, Trajectory, Transition
from envs.types import Step, World

FEWEST_SLOTS = 64


class ActorState(NamedTuple):
    """The state of the actors: nothing here is learnt."""

    world: ArrayTree  # state of the worlds
    step: Step  # the last step; its view is acted on next
    first: Bool[Array, " N"]  # whether the agent's state is zeroed before it sees step.view
    recurrent: RecurrentState  # of the agent
    memory: Memory  # of the intrinsic method, () without one
    episode_return: Float[Array, " N"]  # extrinsic, of the current episode
    episode_success: Bool[Array, " N"]
    episode_interactions: Int[Array, " N"]  # unique interactions so far in this episode
    interactions: CountTable  # of the current episode, arrays [N, ...]


class Events(NamedTuple):
    """What happened at a step, for the metrics."""

    ended: Bool[Array, " N"]  # the episode that the other numbers belong to
    episode_return: Float[Array, " N"]
    episode_success: Bool[Array, " N"]
    episode_length: Int[Array, " N"]
    episode_interactions: Int[Array, " N"]
    environment: Int[Array, " N"]


def begin_actor(
    agent: Agent, world: World, world_state: ArrayTree, step: Step, memory: Memory
) -> ActorState:
    """Return actors at the first moment of their first episode.

    Args:
        agent: that acts.
        world: the worlds.
        world_state: of worlds that have just begun (`world.init`).
        step: the first one of these worlds.
        memory: of the intrinsic method, () without one.
    """
    return ActorState(
        world=world_state,
        step=step,
        first=jnp.ones(world.num_worlds, bool),
        recurrent=agent.initial_state(world.num_worlds),
        memory=memory,
        episode_return=jnp.zeros(world.num_worlds),
        episode_success=jnp.zeros(world.num_worlds, bool),
        episode_interactions=jnp.zeros(world.num_worlds, jnp.int32),
        interactions=empty_tables(world.num_worlds, interaction_slots(world.max_steps)),
    )


def rollout(
    agent: Agent,
    world: World,
    intrinsic: Intrinsic,
    params: AgentParams,
    intrinsic_params: Params,
    actor: ActorState,
    key: PRNGKeyArray,
    unroll: int,
) -> tuple[ActorState, Trajectory, Events]:
    """Play `unroll` steps in every world with one policy.

    Args:
        agent: that acts.
        world: the worlds.
        intrinsic: the method that observes each step.
        params: of the agent.
        intrinsic_params: of the method.
        actor: before the first step.
        key: draws actions, and what the intrinsic method draws.
        unroll: number of steps.

    Returns:
        The actor after the last step, the trajectory, and events `[T, N]`.
    """
    begin_key, scan_key = jax.random.split(key)
    params = agent.precompute(params, actor.step.view)
    actor = actor._replace(memory=intrinsic.begin_rollout(actor.memory, begin_key, actor.step))
    observe = intrinsic.observe if intrinsic.observe_rollout is None else _note

    def play_step(actor: ActorState, key: PRNGKeyArray) -> tuple[ActorState, Any]:
        action_key, observe_key = jax.random.split(key)
        after, transition, events = act(agent, world, params, actor, action_key)
        experience = Experience(actor.step.view, transition.action, after.step)
        memory, signal = observe(intrinsic_params, actor.memory, observe_key, experience)
        seen = actor.step.view, actor.first
        return after._replace(memory=memory), (seen, transition, signal, events)

    keys = jax.random.split(scan_key, unroll)
    last, ((view, first), steps, signal, events) = scan(play_step, actor, keys, world.num_worlds)
    if intrinsic.observe_rollout is not None:
        keys, after = signal
        experience = Experience(view, steps.action, after)
        memory, signal = intrinsic.observe_rollout(intrinsic_params, last.memory, keys, experience)
        last = last._replace(memory=memory)
    trajectory = Trajectory(
        view=jnp.concatenate([view, last.step.view[None]]),
        first=jnp.concatenate([first, last.first[None]]),
        steps=steps,
        signal=signal,
        initial_state=actor.recurrent,
    )
    return last, trajectory, events


def act(
    agent: Agent, world: World, params: AgentParams, actor: ActorState, key: PRNGKeyArray
) -> tuple[ActorState, Transition, Events]:
    """Play one step in every world: choose actions, move the worlds, record the episodes.

    Training, evaluation and `watch` all step through this function. The returned actor's `step`
    has the next views. No intrinsic method observes it.

    Args:
        agent: that acts.
        world: the worlds.
        params: of the agent; computes faster with those that it has precomputed.
        actor: before the step.
        key: draws the actions.
    """
    view, first = actor.step.view[None], actor.first[None]
    logits, _, recurrent = agent.apply(params, view, first, actor.recurrent)
    action = sample_actions(key, logits[0])
    world_state, step = world.step(actor.world, action)
    transition = Transition(action, logits[0], step.reward, step.terminated, step.truncated)
    actor, events = _record(actor, step)
    return actor._replace(world=world_state, recurrent=recurrent), transition, events


def _note(
    params: Params, memory: Memory, key: PRNGKeyArray, experience: Experience
) -> tuple[Memory, Signal]:
    """Record the key and the step; `observe_rollout` processes them after the loop."""
    return memory, (key, experience.step)


def _record(actor: ActorState, step: Step) -> tuple[ActorState, Events]:
    """Add a step to the records of the current episodes; an episode that ends resets them."""
    ended = step.terminated | step.truncated
    episode_return = actor.episode_return + step.reward
    episode_success = actor.episode_success | step.success
    interactions, count = jax.vmap(visit)(actor.interactions, step.interaction)
    unique = (count == 1) & step.interaction.any(axis=-1)
    episode_interactions = actor.episode_interactions + unique
    events = Events(
        ended=ended,
        episode_return=episode_return,
        episode_success=episode_success,
        episode_length=step.length,
        episode_interactions=episode_interactions,
        environment=step.environment,
    )
    actor = actor._replace(
        step=step,
        # As in the published code, success zeroes the recurrent state, too, even while exploring,
        # where the episode continues.
        first=ended | step.success,
        episode_return=jnp.where(ended, 0.0, episode_return),
        episode_success=episode_success & ~ended,
        episode_interactions=jnp.where(ended, 0, episode_interactions),
        interactions=jax.vmap(reset)(interactions, ended),
    )
    return actor, events


def interaction_slots(max_steps: int) -> int:
    """Return the size of the table of an episode's interactions: at most half of it fills up."""
    return max(FEWEST_SLOTS, 2 << (max_steps - 1).bit_length())
