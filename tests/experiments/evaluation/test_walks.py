"""Walks: which positions are distinct, and where episodes begin and end."""

import jax
import numpy as np
import pytest

from cbet_jax.agent import AgentParams, uniform
from envs.habitat.simulator import FloorMap
from envs.habitat.workers.process import Settings
from envs.habitat.workers.simulators import Simulators
from envs.habitat.world import CELL, habitat_world
from experiments.evaluation import walk_pictures, walks
from tests.support.own_simulator import OWN

STEPS = 6


def test_positions_are_told_apart_by_five_centimetres() -> None:
    nan = float("nan")
    places = np.array([[0.0, 0.0], [0.02, -0.02], [0.03, 0.0], [0.03, 0.12], [nan, nan]])
    assert walks.distinct(places) == 3
    assert walks.distinct(np.stack([places, places + np.array([2 * CELL, 0.0])])) == 6


def test_the_first_visits_of_positions_are_told() -> None:
    nan = float("nan")
    places = np.array([[0.0, 0.0], [0.25, 0.0], [0.01, 0.0], [nan, nan], [0.0, 0.25], [0.25, 0.0]])
    assert walks.firsts(places).tolist() == [True, True, False, False, True, False]


def test_a_map_counts_moments_where_they_were() -> None:
    walkable = np.ones((3, 4), bool)
    drawn = FloorMap((-1.0, 2.0), 0.5, walkable, np.zeros((3, 4, 3), np.uint8))
    places = np.array([[[-0.9, 2.1], [-0.8, 2.2], [0.9, 2.1], [-0.9, 3.4], [np.nan, np.nan]]])
    counts = np.zeros((3, 4), int)
    counts[0, 0], counts[0, 3], counts[2, 0] = 2, 1, 1
    np.testing.assert_array_equal(walks.on_map(places, drawn), counts)


@pytest.fixture(scope="module")
def own():
    """Two simulators that let agents walk without end, one metre a step."""
    simulators = Simulators(Settings("fine", OWN), 2)
    yield simulators
    simulators.close()


@pytest.mark.parametrize("random_starts", [False, True])
def test_episodes_begin_alike_or_all_differently(own, random_starts) -> None:
    world = habitat_world(own, max_steps=STEPS + 1, random_starts=random_starts, shared_start=True)
    walker = walks.make_walker(world, uniform(world.num_actions), 2)
    begun = walks.play(walker, AgentParams(()), jax.random.key(0), 5, random_starts=random_starts)
    assert begun.shape == (5, 3, 2)
    starts = np.unique(begun[:, 0], axis=0)
    assert (len(starts) > 1) == random_starts


def test_nothing_is_counted_after_an_episode_was_cut() -> None:
    simulators = Simulators(Settings("dead", OWN), 1)  # it dies at its third step
    try:
        world = habitat_world(simulators, max_steps=9)
        walker = walks.make_walker(world, uniform(world.num_actions), 5)
        (places,) = walks.play(walker, AgentParams(()), jax.random.key(0), 1, random_starts=False)
    finally:
        simulators.close()
    assert np.isnan(places).all(axis=1).tolist() == [False, False, False, True, True, True]


def test_a_band_of_several_seeds_is_over_seeds(monkeypatch, tmp_path) -> None:
    drawn = []
    monkeypatch.setattr(walk_pictures.figures, "draw_lines", lambda *given: drawn.extend(given[2]))
    moves = np.arange(3)[:, None] * np.array([1.0, 0.0])  # a new position at each moment
    still = np.zeros((3, 2))
    seeds = {0: np.stack([moves, moves]), 1: np.stack([still, still])}
    floor = FloorMap((0.0, 0.0), 1.0, np.ones((1, 1), bool), np.zeros((1, 1, 3), np.uint8))
    for each in (seeds, {0: np.stack([moves, still])}):
        walked = walks.Walked("scene", floor, {"cbet": each})
        walk_pictures.coverage(tmp_path / "x.png", "Title", [], [walked])
    over_seeds, over_episodes = (panel.lines["cbet"] for panel in drawn)
    np.testing.assert_array_equal(over_seeds.mean, [1, 1.5, 2])
    np.testing.assert_allclose(over_seeds.low, over_episodes.low)
