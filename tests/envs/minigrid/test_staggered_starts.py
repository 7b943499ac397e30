"""Staggered starts: worlds that end their episodes only by time limits still stay apart."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.minigrid.generators import GENERATORS, Generator
from envs.minigrid.generators.generator import make_generator
from envs.minigrid.level import REACH_GOAL
from envs.minigrid.level_text import from_text
from envs.minigrid.world import gridworld, staggered_starts

MULTI_ENV = ("MultiRoom-N4-S5", "KeyCorridorS3R3", "BlockedUnlockPickup")
TIME_LIMITS = [GENERATORS[name].max_steps for name in MULTI_ENV]
CYCLE = sum(TIME_LIMITS)
PLAYED_LIMITS = [100, 250, 288]
NUM_WORLDS = 32
DONE = 6


@pytest.mark.parametrize("num_worlds", [1, 16, 128])
def test_starts_are_spread_evenly_over_one_cycle(num_worlds):
    environment, time_limit = staggered_starts(jax.random.key(0), TIME_LIMITS, num_worlds)
    ends = np.cumsum(TIME_LIMITS)
    moments = np.sort(ends[np.asarray(environment)] - np.asarray(time_limit))
    assert moments.min() >= 0
    assert moments.max() < CYCLE
    gaps = np.diff(np.append(moments, moments[0] + CYCLE))
    assert gaps.max() <= 3 * CYCLE / num_worlds + 2  # of an additive recurrence


def test_neighbouring_worlds_are_spread_as_all_worlds_are():
    environment, _ = staggered_starts(jax.random.key(1), TIME_LIMITS, 128)
    for worlds in np.split(np.asarray(environment), 4):
        shares = np.bincount(worlds, minlength=3) / len(worlds)
        np.testing.assert_allclose(shares, np.array(TIME_LIMITS) / CYCLE, atol=0.1)


def test_starts_differ_from_key_to_key():
    one, other = (staggered_starts(jax.random.key(k), TIME_LIMITS, 16)[1] for k in (0, 1))
    assert (one != other).any()


def empty_room(max_steps: int) -> Generator:
    """Return an environment that compiles at once."""
    level = from_text("WGWGWG\nWG>>WG\nWGWGWG", task=REACH_GOAL, max_steps=max_steps)
    sampled = level, jnp.array(True)
    return make_generator(f"room-{max_steps}", 3, 3, max_steps, REACH_GOAL, lambda key: sampled)


@pytest.fixture(scope="module")
def played():
    """Environments and lengths of ended episodes, over two cycles of worlds that do nothing."""
    rooms = [empty_room(limit) for limit in PLAYED_LIMITS]
    world = gridworld(rooms, NUM_WORLDS, explore=True, staggered=True)
    unroll = 100
    rollouts = 2 * sum(PLAYED_LIMITS) // unroll

    def rollout(state, _):
        state = world.refresh(state)
        actions = jnp.full(NUM_WORLDS, DONE)

        def step(state, _):
            state, step = world.step(state, actions)
            return state, (step.environment, jnp.where(step.truncated, step.length, 0))

        return jax.lax.scan(step, state, length=unroll)

    state, _ = jax.jit(world.init)(jax.random.key(2))
    state, record = jax.jit(lambda s: jax.lax.scan(rollout, s, length=rollouts))(state)
    environment, length = (np.asarray(x).reshape(-1, NUM_WORLDS) for x in record)
    return environment, length, world.report(state)


def test_every_moment_has_worlds_in_each_environment_in_proportion_to_its_time_limit(played):
    environment, _, _ = played
    for index, limit in enumerate(PLAYED_LIMITS):
        share = (environment == index).mean(axis=1)
        np.testing.assert_allclose(share, limit / sum(PLAYED_LIMITS), atol=0.11)


def test_only_the_first_episodes_are_shortened(played):
    _, length, _ = played
    firsts = np.array([lengths[lengths > 0][0] for lengths in length.T])
    later = np.concatenate([lengths[lengths > 0][1:] for lengths in length.T])
    assert set(later) == set(PLAYED_LIMITS)
    assert len(set(firsts)) > NUM_WORLDS / 2


def test_the_pool_is_large_enough(played):
    _, _, report = played
    assert report["levels_replayed"] == 0
