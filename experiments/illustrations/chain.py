"""The paper's chain of four places, and a policy that learns to explore it.

The agent starts in A and goes to B or to D. From B it loops between B and C; in D it stays (paper,
section 3.2, figure "chainworld"). Rewards, count tables, acting and learning are those of all
experiments; only the policy is a table instead of a network.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from cbet_jax.config import CountSettings, TrainSettings
from cbet_jax.counts.resets import Resets
from cbet_jax.episode_records import with_episode_records
from cbet_jax.intrinsic.count_based import CHANGES, STATES, CountReward, count_based
from cbet_jax.learner import begin_learner, make_optimizers, update
from cbet_jax.method_check.corridor import table_agent
from cbet_jax.rollout import begin_actor, rollout
from envs.types import Step, World

PLACES = "ABCD"
A, B, C, D = range(4)
NEXT = np.array([[B, D], [C, C], [B, B], [D, D]])  # [place, action]; the action matters only in A
GO_TO_B, GO_TO_D = range(2)
Numbers = Any  # Float[Array, "rules seeds episodes ..."], or numpy's
SLOTS = 64  # slots of a count table, enough for four places and ten changes


class Rule(NamedTuple):
    """A rule for resetting counts."""

    name: str
    at_the_end: bool  # whether every episode's end resets them
    probability: float  # probability of a reset at each step, of states and of changes


class Learnt(NamedTuple):
    """The policy and its play, episode by episode."""

    to_d: Numbers  # probability that the policy goes from A to D
    share: Numbers  # share of steps in each place
    reward: Numbers  # mean intrinsic reward a step


def learn(
    settings: TrainSettings, reward: CountReward, rules: Sequence[Rule], keys: Key[Array, " seeds"]
) -> Learnt:
    """Learn a policy for each rule and seed, all in one program.

    An episode has as many steps as a sequence (`settings.unroll`).
    """
    by_seed = jax.vmap(partial(_learn, settings, reward), in_axes=(None, None, 0))
    by_rule = jax.jit(jax.vmap(by_seed, in_axes=(0, 0, None)))
    at_the_end = jnp.array([rule.at_the_end for rule in rules])
    learnt: Learnt = by_rule(at_the_end, jnp.array([rule.probability for rule in rules]), keys)
    return learnt


def _learn(
    settings: TrainSettings,
    reward: CountReward,
    at_the_end: Bool[Array, ""],
    probability: Float[Array, ""],
    key: PRNGKeyArray,
) -> Learnt:
    """Learn one policy: all actors play an episode, then the learner updates, again and again."""
    world, agent = chain(settings.worlds, settings.unroll), table_agent(len(PLACES), NEXT.shape[1])
    settings = replace(settings, counts=CountSettings(capacity=SLOTS))
    intrinsic = count_based("chain", reward, settings, forgetting(at_the_end, probability))
    optimizers = make_optimizers(settings)
    world_key, memory_key, agent_key, scan_key = jax.random.split(key, 4)
    world = with_episode_records(world)
    actor = begin_actor(agent, world, world_key)
    networks, memory = intrinsic.init(memory_key, actor.step)
    learner = begin_learner(agent.init(agent_key), networks, optimizers)

    def episode(carry: Any, key: PRNGKeyArray) -> tuple[Any, Learnt]:
        learner, actor, memory = carry
        parts = agent, world, intrinsic, learner.agent, learner.intrinsic
        played = rollout(*parts, actor, memory, key, settings.unroll)
        to_d = jax.nn.softmax(learner.policy["logits"][A])[GO_TO_D]
        trajectory = played.trajectory
        learner, metrics = update(agent, intrinsic, optimizers, settings, learner, trajectory)
        places = jax.nn.one_hot(trajectory.view[:-1, ..., 0, 0, 0], len(PLACES))
        learnt = Learnt(to_d, places.mean((0, 1)), metrics["intrinsic_reward"])
        return (learner, played.actor, played.memory), learnt

    keys = jax.random.split(scan_key, settings.iterations)
    return jax.lax.scan(episode, (learner, actor, memory), keys)[1]


def forgetting(at_the_end: Bool[Array, ""], probability: Float[Array, ""]) -> Resets:
    """Return resets at each episode's end, or at random, or both."""

    def mask(key: PRNGKeyArray, step: Step, shape: tuple[int, int]) -> Bool[Array, "kinds N"]:
        return (at_the_end & step.truncated) | jax.random.bernoulli(key, probability, shape)

    return Resets(mask)


def chain(actors: int, steps: int) -> World:
    """Return a batch of chains with episodes of `steps` steps."""

    def init(key: PRNGKeyArray) -> tuple[Any, Step]:
        del key
        start = jnp.full(actors, A, jnp.int32)
        return (start, start), see(start, start, start > A)

    def step(state: Any, action: Int[Array, " N"]) -> tuple[Any, Step]:
        place, played = jnp.asarray(NEXT, jnp.int32)[state[0], action], state[1] + 1
        ended = played == steps
        place = jnp.where(ended, A, place)
        return (place, jnp.where(ended, 0, played)), see(place, played, ended)

    def see(place: Int[Array, " N"], played: Int[Array, " N"], ended: Bool[Array, " N"]) -> Step:
        view = jnp.broadcast_to(place[:, None, None, None], (actors, 1, 1, 3)).astype(jnp.uint8)
        panorama = jax.nn.one_hot(place, len(PLACES), dtype=jnp.int32)
        return Step.without_task(view, panorama, played, ended)

    return World(
        init=init,
        step=step,
        num_worlds=actors,
        num_actions=NEXT.shape[1],
        view_shape=(1, 1, 3),
        environments=("chainworld",),
        max_steps=steps,
    )


def fresh_rewards(reward: CountReward, action: int, steps: int) -> np.ndarray:
    """Return rewards `[steps]` of an episode that takes this action in A, from empty counts."""
    place, seen = A, {STATES: Counter[Any](), CHANGES: Counter[Any]()}
    counts: dict[str, list[float]] = {STATES: [], CHANGES: []}
    for _ in range(steps):
        after = int(NEXT[place, action])
        change = (place, after) if place != after else "none"
        for kind, thing in ((STATES, after), (CHANGES, change)):
            seen[kind][thing] += 1
            counts[kind].append(seen[kind][thing])
        place = after
    return np.asarray(reward.formula(*(jnp.array(counts[kind]) for kind in reward.counted)))
