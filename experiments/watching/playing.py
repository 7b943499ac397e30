"""Play one gridworld step by step, and record every moment to show."""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby, zip_longest
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from cbet_jax.agent import Agent, AgentParams
from cbet_jax.episode_records import CurrentEpisodes, with_episode_records
from cbet_jax.intrinsic.interface import Experience, Intrinsic, Memory
from cbet_jax.rollout import ActorState, act, begin_actor
from cbet_jax.runs.devices import compiled_quickly
from cbet_jax.runs.signals import interruptible
from cbet_jax.types import Trajectory
from envs.minigrid import cells as c
from envs.minigrid import rules
from envs.minigrid.export import encoding_tables
from envs.minigrid.rules import State
from envs.types import Step, World


class Player(NamedTuple):
    """An agent and the intrinsic method that rewards it."""

    title: str
    agent: Agent
    params: AgentParams
    intrinsic: Intrinsic
    intrinsic_params: Any  # the method's networks (None: new ones)


class Moment(NamedTuple):
    """A gridworld at one moment, and the outcome of the action that led there."""

    state: State  # on the host, before any reset
    episode: int  # 1, 2, ...
    step: int  # actions played in this episode
    action: str  # "" at the first moment of an episode
    extrinsic: float  # reward
    intrinsic: float  # reward, before its coefficient
    interactions: int  # unique interactions in this episode
    event: str  # "success", "lava", "out of time" or ""


class _Advance(NamedTuple):
    """The outcome of one compiled step."""

    played: State  # arrays [1, ...], before any reset
    action: Int[Array, "1"]
    step: Step
    episodes: CurrentEpisodes
    intrinsic: Float[Array, "1"]


def play(
    world: World, player: Player, key: PRNGKeyArray, episodes: int, steps: int | None = None
) -> Iterator[Moment]:
    """Play, and yield the first moment of each episode and one after each action.

    The counts of the intrinsic reward start empty and continue from episode to episode. As in
    training, an episode's last step is rewarded for the next episode's first view, unless the
    method reads final ones.

    Args:
        world: one gridworld (`num_worlds` 1).
        player: the agent and its rewards.
        key: draws levels, actions, and the intrinsic method's numbers.
        episodes: limit on the episodes.
        steps: limit on the actions of all episodes together (None: no limit).
    """
    if player.intrinsic.final_views:
        world = world.with_final_views()
    world = with_episode_records(world)
    keys = jax.random.split(key, 4)
    begin_keys, play_key = keys[:3], keys[3]
    begin, advance = _compile(world, player, begin_keys)
    refresh = jax.jit(world.refresh, compiler_options=compiled_quickly())
    actor, memory, policy, fresh = begin(player.params, begin_keys)
    params = (policy, fresh if player.intrinsic_params is None else player.intrinsic_params)
    played, over = 0, False
    for episode in range(1, episodes + 1):
        if episode > 1:
            actor = actor._replace(world=refresh(actor.world))
        yield Moment(_only(actor.world.worlds.states), episode, 0, "", 0.0, 0.0, 0, "")
        over = False
        while not over and played != steps:
            key = jax.random.fold_in(play_key, played)
            actor, memory, outcome = advance(params, actor, memory, key)
            played += 1
            moment, over = _moment(outcome, episode)
            yield moment
        if not over:
            return


def side_by_side(*plays: Iterator[Moment]) -> Iterator[tuple[Moment, ...]]:
    """Yield the moments of several plays together; in each episode the shorter plays wait."""
    by_episode = (groupby(play, key=lambda moment: moment.episode) for play in plays)
    for together in zip(*by_episode, strict=False):  # until one of the plays is over
        shown: tuple[Moment, ...] = ()
        for moments in zip_longest(*(episode for _, episode in together)):
            shown = tuple(
                shown[number] if moment is None else moment for number, moment in enumerate(moments)
            )
            yield shown


def facts(moment: Moment) -> list[tuple[str, str]]:
    """Return the facts written beside a moment: labels and values."""
    triples, _ = encoding_tables()
    kind, color, _ = triples[int(moment.state.carrying)]
    nothing = int(moment.state.carrying) == c.EMPTY
    known = moment.action and not math.isnan(moment.intrinsic)
    return [
        ("episode", str(moment.episode)),
        ("step", f"{moment.step} of {int(moment.state.level.max_steps)}"),
        ("action", moment.action),
        ("extrinsic reward", f"{moment.extrinsic:.4f}" if moment.action else ""),
        ("intrinsic reward", f"{moment.intrinsic:.4f}" if known else ""),
        ("interactions", str(moment.interactions)),
        ("carries", "" if nothing else f"{c.COLORS[color]} {c.TYPES[kind]}"),
        ("event", moment.event),
    ]


def _compile(
    world: World, player: Player, keys: Key[Array, " 3"]
) -> tuple[jax.stages.Compiled, jax.stages.Compiled]:
    """Compile two programs in parallel: the beginning of play, and one action."""
    begin = jax.jit(partial(_begin, world, player)).trace(player.params, keys)
    actor, memory, policy, fresh = begin.out_info
    kept = fresh if player.intrinsic_params is None else player.intrinsic_params
    advance = jax.jit(partial(_advance, world, player)).trace(
        (policy, kept), actor, memory, keys[0]
    )

    def compile_both() -> tuple[jax.stages.Compiled, jax.stages.Compiled]:
        with ThreadPoolExecutor() as threads:
            both = threads.map(lambda t: t.lower().compile(compiled_quickly()), (begin, advance))
            return next(both), next(both)

    return interruptible(compile_both)


def _begin(
    world: World, player: Player, params: AgentParams, keys: Key[Array, " 3"]
) -> tuple[ActorState, Memory, AgentParams, Any]:
    """Return the actor at its first moment, the agent ready to act, and new networks."""
    world_key, memory_key, begin_key = keys
    actor = begin_actor(player.agent, world, world_key)
    fresh_params, memory = player.intrinsic.init(memory_key, actor.step)
    memory = player.intrinsic.begin_rollout(memory, begin_key, actor.step)
    return actor, memory, player.agent.precompute(params, actor.step.policy_view), fresh_params


def _advance(
    world: World,
    player: Player,
    params: tuple[Any, Any],
    actor: ActorState,
    memory: Memory,
    key: PRNGKeyArray,
) -> tuple[ActorState, Memory, _Advance]:
    """Play one action, as `cbet_jax.rollout.rollout` does, and reward it."""
    policy_params, intrinsic_params = params
    action_key, observe_key = jax.random.split(key)
    after, transition = act(player.agent, world, policy_params, actor, action_key)
    seen = after.step._replace(final_view=transition.final_view)
    one = Experience(actor.step.view, transition.action, seen), transition
    experience, transitions = jax.tree.map(lambda leaf: leaf[None], one)
    memory, signal = player.intrinsic.observe(
        intrinsic_params, memory, observe_key[None], experience
    )
    trajectory = Trajectory(
        view=jnp.stack([actor.step.view, after.step.view]),
        first=jnp.stack([actor.first, after.first]),
        steps=transitions,
        signal=signal,
        initial_state=actor.recurrent,
    )
    (reward,), _ = player.intrinsic.reward_and_loss(intrinsic_params, trajectory)
    played, _ = jax.vmap(rules.step)(actor.world.worlds.states, transition.action)
    episodes = after.world.episodes
    return after, memory, _Advance(played, transition.action, after.step, episodes, reward)


def _moment(outcome: _Advance, episode: int) -> tuple[Moment, bool]:
    """Return the moment after a step, and whether the step ended the episode."""
    state, action, step, episode_so_far, intrinsic = _only(outcome)
    event = "success" if step.success else "lava" if step.terminated else ""
    moment = Moment(
        state=state,
        episode=episode,
        step=int(step.length),
        action=rules.ACTIONS[action],
        extrinsic=float(step.reward),
        intrinsic=float(intrinsic),
        interactions=int(episode_so_far.interactions),
        event=event or ("out of time" if step.truncated else ""),
    )
    return moment, bool(episode_so_far.ended)


def _only(batch: Any) -> Any:
    """Return the one world of a batch, on the host."""
    return jax.tree.map(lambda leaf: leaf[0], jax.device_get(batch))
