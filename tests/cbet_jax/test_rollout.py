"""Acting: what a trajectory records, and what the worlds record of their episodes."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.agent import AgentParams, network_agent, uniform
from cbet_jax.config import CountSettings, TrainSettings
from cbet_jax.counts.table import empty_table, visit
from cbet_jax.episode_records import interaction_slots, with_episode_records
from cbet_jax.intrinsic.cbet import cbet
from cbet_jax.intrinsic.none import NONE
from cbet_jax.rollout import begin_actor, rollout
from envs.minigrid.generators import GENERATORS
from envs.minigrid.world import gridworld
from tests.support.counting import NO_PARAMS
from tests.support.tiny import NETWORK
from tests.support.worlds import corridor

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
        actor = begin_actor(agent, world, key)
        _, memory = method.init(key, actor.step)
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


def test_records_are_those_of_the_current_episode():
    """The first episode succeeds, which does not end it, and comes to places twice."""
    plain = corridor(1)  # episodes of 7 steps; the goal is place 3

    def step(state, action):
        state, seen = plain.step_with_final(state, action)
        place = seen.final_view[:, 0, 0, :2].astype(jnp.uint32)  # an interaction; none at 0
        return state, seen._replace(interaction=place, reward=seen.reward / 4, final_view=None)

    world = with_episode_records(replace(plain, step=step))
    action = np.array([[2, 2, 2, 0, 0, 0, 1, 2, 2, 0, 0, 1, 1, 1]]).T

    def play(state, action):
        state, _ = world.step(state, action)
        return state, state.episodes

    state, _ = world.init(jax.random.key(0))
    played = jax.jit(lambda state: jax.lax.scan(play, state, action)[1])(state)
    of = lambda name: getattr(played, name)[:, 0].tolist()  # noqa: E731
    assert of("success") == [False] * 2 + [True] * 5 + [False] * 7
    assert of("extrinsic_return") == [0] * 2 + [0.25] * 5 + [0] * 7
    assert of("interactions") == [1, 2, 3, 3, 3, 3, 3, 1, 2, 2, 2, 2, 2, 2]
    assert of("length") == [*range(1, 8)] * 2


def test_a_method_sees_the_views_acted_in_and_led_to_and_each_beginning():
    plain = corridor(2).with_final_views()

    def step(state, action):
        state, seen = plain.step(state, action)
        return state, seen._replace(reward=seen.reward / 2)

    def observe(params, memory, keys, seen):
        return memory, (seen.view, seen.step.reached, seen.step.reward)

    world = with_episode_records(replace(plain, step=step))
    begin = lambda memory, *_: memory + 1  # noqa: E731
    method = NONE._replace(final_views=True, begin_rollout=begin, observe=observe)
    agent = uniform(3)

    @jax.jit
    def play(key):
        actor = begin_actor(agent, world, key)
        parts = agent, world, method, AgentParams(()), NO_PARAMS
        return rollout(*parts, actor, jnp.int32(0), key, 20)

    played = play(jax.random.key(0))
    (acted_in, reached, reward), steps = played.trajectory.signal, played.trajectory.steps
    assert played.memory == 1
    np.testing.assert_array_equal(acted_in, played.trajectory.view[:-1])
    np.testing.assert_array_equal(reached, steps.final_view)
    assert (reached != played.trajectory.view[1:]).any()
    np.testing.assert_array_equal(steps.extrinsic_reward, reward)
    assert set(np.unique(reward)) == {0, 0.5}
