"""Simulators as a batched world."""

import inspect
import os
import signal
from types import SimpleNamespace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.habitat.raycast.simulator import open_scene
from envs.habitat.simulator import FORWARD, LEFT, FloorMap, Pose, SimulatorError, turn
from envs.habitat.workers.process import Settings
from envs.habitat.workers.simulators import Simulators, simulator_errors
from envs.habitat.world import CELL, habitat_world, make_grid, visit
from tests.support.own_simulator import OWN

ACTIONS = np.random.default_rng(0).integers(0, 3, (40, 2)).astype(np.int32)


@pytest.fixture
def simulators_of():
    """Start simulators that end with the test."""
    started = []

    def start(*arguments, **options) -> Simulators:
        started.append(Simulators(*arguments, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture(scope="module")
def raycasts(scene):
    simulators = Simulators(Settings(scene), 2)
    yield simulators
    simulators.close()


def play(world, actions, key=0):
    """Begin, play in one compiled scan, and return everything of every moment."""

    @jax.jit
    def run(key, actions):
        state, step = world.init(key)
        end, (states, steps) = jax.lax.scan(
            lambda state, action: (lambda after: (after[0], after))(world.step(state, action)),
            state,
            actions,
        )
        return (state, step), (states, steps), end

    return run(jax.random.key(key), jnp.asarray(actions))


@pytest.fixture(scope="module")
def sevens(raycasts):
    """A world whose episodes have seven steps, its first moment, all others, and the last."""
    world = habitat_world(raycasts, max_steps=7)
    return world, *play(world, ACTIONS)


def test_plays_what_the_simulator_plays(raycasts, scene) -> None:
    world = habitat_world(raycasts, max_steps=1000)
    (state, first), (states, steps), _ = play(world, ACTIONS)
    simulator = open_scene(scene)
    for index in range(2):
        moment = simulator.reset(int(state.seeds[index]))
        np.testing.assert_array_equal(first.view[index], moment.view)
        for time, action in enumerate(ACTIONS[:, index].tolist()):
            moment = simulator.step(action)
            np.testing.assert_array_equal(steps.view[time, index], moment.view)
            np.testing.assert_array_equal(steps.panorama[time, index], moment.panorama.ravel())
            assert tuple(states.position[time, index].tolist()) == moment.pose.position
            assert states.heading[time, index] == moment.pose.heading
    assert not steps.truncated.any()
    assert steps.length[-1].tolist() == [40, 40]


def test_every_episode_begins_at_its_actors_start(sevens) -> None:
    world, (state, first), (states, steps), _ = sevens
    assert (state.position[0] != state.position[1]).any()
    assert not state.heading.any()
    ended = np.arange(1, 41) % 7 == 0
    np.testing.assert_array_equal(steps.truncated, np.stack([ended, ended], axis=1))
    np.testing.assert_array_equal(steps.length[:, 0], np.arange(40) % 7 + 1)
    for time in np.flatnonzero(ended):
        np.testing.assert_array_equal(steps.view[time], first.view)
        np.testing.assert_array_equal(steps.panorama[time], first.panorama)
        np.testing.assert_array_equal(states.position[time], state.position)
        assert not states.heading[time].any()
    other, _ = world.init(jax.random.key(1))
    assert (other.position != state.position).any()
    chex.assert_trees_all_equal(states.seeds, jnp.broadcast_to(state.seeds, (40, 2)))


def test_final_views_are_of_the_poses_that_actions_led_to(sevens, scene) -> None:
    world, (state, _), (states, steps), _ = sevens
    _, (_, seen), _ = play(world.with_final_views(), ACTIONS)
    chex.assert_trees_all_equal(seen._replace(final_view=None), steps)
    simulator = open_scene(scene)
    before = np.concatenate([state.heading[None], states.heading[:-1]])
    for time, action in enumerate(ACTIONS[:, 0].tolist()):
        x, y, z = states.reached[time, 0].tolist()
        there = simulator.teleport(Pose((x, y, z), turn(float(before[time, 0]), action)))
        np.testing.assert_array_equal(seen.final_view[time, 0], there.view)


def test_actors_can_share_a_start(raycasts) -> None:
    state, _ = habitat_world(raycasts, shared_start=True).init(jax.random.key(0))
    chex.assert_trees_all_equal(state.position[0], state.position[1])
    each_its_own = habitat_world(raycasts, shared_start=True, random_starts=True)
    state, _ = each_its_own.init(jax.random.key(0))
    assert (state.position[0] != state.position[1]).any()


def test_episodes_can_begin_anywhere(raycasts) -> None:
    world = habitat_world(raycasts, max_steps=2, random_starts=True)
    (state, _), (states, _), _ = play(world, ACTIONS[:12])
    starts = np.concatenate([state.position[None], states.position[1::2]]).reshape(-1, 3)
    assert len(np.unique(starts, axis=0)) == len(starts)
    assert not states.heading[1::2].any()


def test_counts_rounded_positions_as_numpy_does(sevens, raycasts) -> None:
    world, (state, _), (states, _), end = sevens
    been = np.concatenate([np.asarray(state.position), np.reshape(states.reached, (-1, 3))])
    rounded = {tuple(cell) for cell in np.round(been[:, [0, 2]].astype(float) / CELL)}
    assert int(world.report(end)["positions"]) == len(rounded)
    assert int(end.visits.sum()) == len(been)
    grid = make_grid(raycasts)
    rows, columns = np.nonzero(end.visits)
    found = {
        (float(x + grid.first[1]), float(z + grid.first[0]))
        for z, x in zip(rows, columns, strict=True)
    }
    assert found == rounded


def test_what_lies_beyond_the_grid_counts_at_its_edge(raycasts) -> None:
    grid = make_grid(raycasts)
    visits = visit(grid, jnp.zeros(grid.shape, jnp.int32), jnp.array([(99.0, 0.0, -99.0)]))
    assert int(visits[0, -1]) == 1


def test_the_grid_has_a_cell_for_every_corner_of_the_map() -> None:
    drawn = FloorMap((-0.3, 0.2), CELL, np.ones((2, 4), bool), np.zeros((2, 4, 3), np.uint8))
    unchecked = inspect.unwrap(make_grid)  # only tests check the types
    grid = unchecked(SimpleNamespace(floor_map=lambda cell: drawn))
    places = [(-0.3 + CELL * x, 0.0, 0.2 + CELL * z) for x in range(5) for z in range(3)]
    visits = visit(grid, jnp.zeros(grid.shape, jnp.int32), jnp.array(places))
    assert int((visits > 0).sum()) == len(places)


def test_a_step_is_a_function_of_its_arguments(sevens, simulators_of, scene) -> None:
    # As a resumed run needs it, and one that goes back to an earlier moment.
    world, _, (states, _), _ = sevens
    middle = jax.tree.map(lambda leaf: leaf[19], states)
    step = jax.jit(world.step)
    later = [step(middle, ACTIONS[20]) for _ in range(2)]
    chex.assert_trees_all_equal(later[0], later[1])
    fresh = habitat_world(simulators_of(Settings(scene), 2), max_steps=7)
    chex.assert_trees_all_equal(jax.jit(fresh.step)(middle, ACTIONS[20]), later[0])


def test_a_lost_simulators_episode_is_cut(simulators_of) -> None:
    simulators = simulators_of(Settings("fine", OWN), 3)
    world = habitat_world(simulators, max_steps=100)
    state, first = jax.jit(world.init)(jax.random.key(0))
    step = jax.jit(world.step_with_final)
    state, before = step(state, jnp.array([FORWARD, FORWARD, LEFT]))
    os.kill(simulators.workers._workers[1]._process.pid, signal.SIGKILL)
    after, seen = step(state, jnp.array([FORWARD, FORWARD, LEFT]))
    assert seen.truncated.tolist() == [False, True, False]
    assert seen.length.tolist() == [2, 2, 2]
    assert after.played.tolist() == [2, 0, 2]
    np.testing.assert_array_equal(seen.view[1], first.view[1])
    np.testing.assert_array_equal(seen.final_view[1], before.view[1])  # the last one there is
    np.testing.assert_array_equal(after.reached[1], state.position[1])
    assert float(after.heading[2]) == 20.0
    assert int(world.report(after)["episodes_cut"]) == simulators.workers.restarts == 1
    after, seen = step(after, jnp.array([FORWARD, FORWARD, LEFT]))
    assert seen.length.tolist() == [3, 1, 3]
    assert simulators.played.steps == 9  # three of each


def test_a_simulator_that_is_lost_too_often_stops_the_run_in_one_line(
    simulators_of, caplog, capfd
) -> None:
    simulators = simulators_of(Settings("always_dead", OWN), 1)
    world = habitat_world(simulators)
    with (
        pytest.raises(SimulatorError, match="its last words: cannot go on") as error,
        simulator_errors(simulators),
    ):
        jax.block_until_ready(play(world, np.zeros((5, 1), np.int32)))
    assert "\n" not in str(error.value)
    assert caplog.records == []  # JAX logs a failed callback, unless it is told not to
    assert capfd.readouterr().err == ""


def test_starts_of_later_episodes_count(raycasts) -> None:
    world = habitat_world(raycasts, max_steps=2, random_starts=True)
    (state, _), (states, _), end = play(world, np.zeros((8, 2), np.int32))
    been = np.concatenate([state.position[None], states.position, states.reached]).reshape(-1, 3)
    rounded = {tuple(cell) for cell in np.round(been[:, [0, 2]].astype(float) / CELL)}
    assert int(world.report(end)["positions"]) == len(rounded)
