"""Acting: what a trajectory records, and what the worlds record of their episodes."""

import jax
import numpy as np
import pytest

from cbet_jax.agent import network_agent
from cbet_jax.config import CountSettings, TrainSettings
from cbet_jax.counts.table import empty_table, visit
from cbet_jax.episode_records import interaction_slots, with_episode_records
from cbet_jax.intrinsic.cbet import cbet
from cbet_jax.rollout import begin_actor, rollout
from envs.minigrid.generators import GENERATORS
from envs.minigrid.world import gridworld
from tests.support.counting import NO_PARAMS
from tests.support.tiny import NETWORK

LIMIT = 40  # steps of an episode of MultiRoom-N2-S4, with which every world begins
WORLDS, STEPS = 6, 60


@pytest.fixture(scope="module")
def played():
    generators = [GENERATORS[name] for name in ("MultiRoom-N2-S4", "DoorKey-5x5")]
    world = with_episode_records(gridworld(generators, WORLDS, explore=True))
    settings = TrainSettings(counts=CountSettings(capacity=1024))
    method = cbet(settings, world.num_actions)
    agent = network_agent(NETWORK, world.num_actions, world.view_shape)
    params = jax.jit(agent.init)(jax.random.key(0))

    @jax.jit
    def play_from(key):
        world_state, step = world.init(key)
        _, memory = method.init(key, step)
        actor = begin_actor(agent, world, world_state, step)
        parts = agent, world, method, params, NO_PARAMS
        return actor, rollout(*parts, actor, memory, key, STEPS)

    first, played = play_from(jax.random.key(1))
    return agent, params, first, played.actor, played.trajectory, played.episodes


def test_the_views_run_from_the_first_to_the_one_that_comes_next(played):
    _, _, first, last, trajectory, _ = played
    assert trajectory.view.shape == (STEPS + 1, WORLDS, 7, 7, 3)
    np.testing.assert_array_equal(trajectory.view[0], first.step.view)
    np.testing.assert_array_equal(trajectory.view[-1], last.step.view)
    np.testing.assert_array_equal(trajectory.first[-1], last.first)


def test_the_logits_are_those_of_the_policy_that_learns_from_them(played):
    """Acting and learning see the same recurrent states, over ends of episodes."""
    agent, params, _, _, trajectory, _ = played
    seen = trajectory.view, trajectory.first, trajectory.initial_state
    logits, *_ = jax.jit(agent.apply)(params, *seen)
    np.testing.assert_allclose(logits[:-1], trajectory.steps.logits, atol=1e-4)


def test_episodes_end_at_their_time_limit_and_the_next_world_begins(played):
    *_, trajectory, episodes = played
    ended = np.asarray(episodes.ended)
    np.testing.assert_array_equal(np.flatnonzero(ended[:, 0]), [LIMIT - 1])
    np.testing.assert_array_equal(episodes.length[LIMIT - 1], LIMIT)
    np.testing.assert_array_equal(episodes.environment[LIMIT - 1], 0)
    np.testing.assert_array_equal(episodes.environment[LIMIT], 1)
    np.testing.assert_array_equal(episodes.length[LIMIT], 1)
    np.testing.assert_array_equal(trajectory.first[LIMIT], True)
    assert not np.asarray(trajectory.steps.terminated).any()
    np.testing.assert_array_equal(trajectory.steps.truncated, ended)


def test_unique_interactions_never_fall_within_an_episode_and_start_anew(played):
    *_, episodes = played
    interactions = np.asarray(episodes.interactions)
    assert interactions[:LIMIT].max() > 0
    assert (np.diff(interactions[:LIMIT], axis=0) >= 0).all()
    assert (np.diff(interactions[:LIMIT], axis=0) <= 1).all()
    assert interactions[LIMIT].max() <= 1


@pytest.mark.parametrize("max_steps", [80, 2560, 3600])  # MultiRoom-N4-S5 to ObstructedMaze-Full
def test_an_episode_of_nothing_but_interactions_finds_room_for_all(max_steps):
    keys = jax.random.bits(jax.random.key(0), (max_steps, 2), "uint32")
    table = empty_table(interaction_slots(max_steps))
    table, counts = jax.lax.scan(visit, table, keys)
    assert (counts == 1).all()
    assert table.overflow == 0
    assert (jax.lax.scan(visit, table, keys)[1] == 2).all()
