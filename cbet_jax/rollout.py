"""Acting: one sequence of steps in every world, inside one scan."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from cbet_jax.agent import Agent, AgentParams, RecurrentState
from cbet_jax.counts.table import CountTable, empty_tables, reset, visit
from cbet_jax.intrinsic.types import Intrinsic, Memory, Signal
from cbet_jax.networks.policy_network import sample_actions
from cbet_jax.types import Trajectory, Transition
from envs.types import Step, World

FEWEST_SLOTS = 64


class ActorState(NamedTuple):
    """Where the actors are: nothing here is learnt."""

    world: Any
    step: Step  # the last one; its view is acted on next
    first: Bool[Array, " N"]  # the recurrent state is zeroed before that view is read
    recurrent: RecurrentState  # the agent's
    memory: Any  # the intrinsic method's
    episode_return: Float[Array, " N"]  # extrinsic, of the episode under way
    episode_success: Bool[Array, " N"]
    episode_interactions: Int[Array, " N"]  # unique ones
    interactions: CountTable  # those of the episode under way, arrays [N, ...]


class Events(NamedTuple):
    """What happened in a rollout, for the metrics. Arrays [T, N]."""

    ended: Bool[Array, "T N"]
    episode_return: Float[Array, "T N"]
    episode_success: Bool[Array, "T N"]
    episode_length: Int[Array, "T N"]
    episode_interactions: Int[Array, "T N"]
    environment: Int[Array, "T N"]


def rollout(
    params: AgentParams,
    actor: ActorState,
    key: PRNGKeyArray,
    agent: Agent,
    world: World,
    intrinsic: Intrinsic,
    unroll: int,
) -> tuple[ActorState, Trajectory, Events]:
    """Plays `unroll` steps in every world with one policy."""
    begin_key, scan_key = jax.random.split(key)
    params = agent.precompute(params, actor.step.view)
    actor = actor._replace(memory=intrinsic.begin_rollout(actor.memory, begin_key, actor.step))
    observe = intrinsic.observe if intrinsic.observe_rollout is None else _note

    def act(actor: ActorState, key: PRNGKeyArray) -> tuple[ActorState, Any]:
        action_key, intrinsic_key = jax.random.split(key)
        view, first = actor.step.view[None], actor.first[None]
        logits, _, recurrent = agent.apply(params, view, first, actor.recurrent)
        action = sample_actions(action_key, logits[0])
        world_state, step = world.step(actor.world, action)
        memory, signal = observe(actor.memory, intrinsic_key, step)
        transition = Transition(
            view=actor.step.view,
            first=actor.first,
            action=action,
            logits=logits[0],
            extrinsic_reward=step.reward,
            terminated=step.terminated,
            truncated=step.truncated,
            signal=signal,
        )
        actor, events = follow(actor, step)
        actor = actor._replace(world=world_state, recurrent=recurrent, memory=memory)
        return actor, (transition, events)

    last, (transitions, events) = jax.lax.scan(act, actor, jax.random.split(scan_key, unroll))
    if intrinsic.observe_rollout is not None:
        memory, signal = intrinsic.observe_rollout(last.memory, *transitions.signal)
        last, transitions = last._replace(memory=memory), transitions._replace(signal=signal)
    return last, _trajectory(transitions, actor, last), events


def _note(memory: Memory, key: PRNGKeyArray, step: Step) -> tuple[Memory, Signal]:
    """Keeps what the method is to observe after the loop."""
    return memory, (key, step)


def _trajectory(transitions: Transition, begin: ActorState, end: ActorState) -> Trajectory:
    """Adds the ends to transitions with a leading axis of time."""
    steps = transitions._asdict()
    steps["view"] = jnp.concatenate([transitions.view, end.step.view[None]])
    steps["first"] = jnp.concatenate([transitions.first, end.first[None]])
    return Trajectory(**steps, initial_state=begin.recurrent)


def begin_actor(
    key: PRNGKeyArray, world: World, intrinsic_memory: Any, recurrent: RecurrentState
) -> ActorState:
    """Returns actors at the first moment of their first episode."""
    world_state, step = world.init(key)
    return ActorState(
        world=world_state,
        step=step,
        first=jnp.ones(world.num_worlds, bool),
        recurrent=recurrent,
        memory=intrinsic_memory,
        episode_return=jnp.zeros(world.num_worlds),
        episode_success=jnp.zeros(world.num_worlds, bool),
        episode_interactions=jnp.zeros(world.num_worlds, jnp.int32),
        interactions=empty_tables(world.num_worlds, interaction_slots(world.max_steps)),
    )


def interaction_slots(max_steps: int) -> int:
    """Returns the slots of the table that tells an episode's interactions apart.

    There are two for every step of the longest episode, so that it never fills beyond half.
    """
    return max(FEWEST_SLOTS, 2 << (max_steps - 1).bit_length())


def follow(actor: ActorState, step: Step) -> tuple[ActorState, Events]:
    """Keeps the books of the episodes under way."""
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
        # the simulator says "done" at success too, though the episode goes on when exploring
        first=ended | step.success,
        episode_return=jnp.where(ended, 0.0, episode_return),
        episode_success=episode_success & ~ended,
        episode_interactions=jnp.where(ended, 0, episode_interactions),
        interactions=jax.vmap(reset)(interactions, ended),
    )
    return actor, events
