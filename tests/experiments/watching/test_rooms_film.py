"""Watching a run in Habitat: what is played, and the file that shows it."""

import itertools

import jax
import numpy as np
import pytest
from PIL import Image

from cbet_jax.agent import AgentParams, uniform
from envs.habitat.simulator import ACTIONS, PANORAMA_SHAPE, VIEW_SHAPE, FloorMap
from envs.habitat.workers.process import Settings
from envs.habitat.workers.simulators import Simulators
from envs.habitat.world import habitat_world
from experiments import watch
from experiments.watching import rooms_film
from experiments.watching.rooms_film import Sight
from tests.support.own_simulator import OWN
from tests.support.refusal import refused

STEPS = 4


def moments(scene: str, episodes: int, steps: int, limit=None, **options) -> list[Sight]:
    """Play by chance, one metre a step."""
    simulators = Simulators(Settings(scene, OWN), 1)
    world = habitat_world(simulators, max_steps=STEPS + 1)
    agent, key = uniform(len(ACTIONS)), jax.random.key(0)
    seen = rooms_film.play(world, agent, AgentParams(()), key, episodes, steps, limit, **options)
    try:
        return list(seen)
    finally:
        simulators.close()


@pytest.fixture(scope="module")
def sights():
    """Two episodes, cut short by the limit on all steps."""
    return moments("fine", 2, STEPS, STEPS + 2)


def test_it_tells_each_moment_of_each_episode(sights) -> None:
    assert [sight.episode for sight in sights] == [1] * (STEPS + 1) + [2] * 3
    assert [len(sight.path) for sight in sights] == [1, 2, 3, 4, 5, 1, 2, 3]
    np.testing.assert_array_equal(sights[0].path, sights[STEPS + 1].path)
    for before, after in itertools.pairwise(sights):
        if after.episode > before.episode:
            assert (after.action, after.heading) == ("", 0.0)
            continue
        moved = after.path[-1] - before.path[-1]
        assert moved.tolist() == [after.action == "move_forward", 0]
        turn = {"move_forward": 0, "turn_left": 10, "turn_right": -10}[after.action]
        assert after.heading == (before.heading + turn) % 360
        assert (after.view == after.heading / 10).all()


def test_a_frame_shows_view_panorama_and_path() -> None:
    views = np.arange(50, 250, 50, dtype=np.uint8)
    panorama = np.broadcast_to(views[:, None, None, None], PANORAMA_SHAPE)
    path = np.array([[0.5, 0.5], [0.5, 3.5]])
    sight = Sight(np.full(VIEW_SHAPE, 255, np.uint8), panorama, path, 0.0, 1, "turn_left")
    drawn = FloorMap((0.0, 0.0), 1.0, np.ones((4, 4), bool), np.zeros((4, 4, 3), np.uint8))
    frame = rooms_film.frame("a room", drawn, sight)
    assert (frame == 255).all(axis=-1).sum() >= rooms_film.VIEW**2
    for brightness in views:
        area = (frame == brightness).all(axis=-1).sum()
        assert area >= rooms_film.COMPASS_VIEW**2
    strip = frame[rooms_film.LINE + rooms_film.VIEW + 3 * rooms_film.MARGIN]
    shown = [value for value in strip[:, 0].tolist() if value in views]
    assert list(dict.fromkeys(shown)) == [100, 50, 200, 150]  # west, north, east, south
    reds = np.argwhere((frame == rooms_film.AGENT).all(axis=-1))
    blues = np.argwhere((frame == rooms_film.PATH).all(axis=-1))
    cell = rooms_film.LARGEST_MAP / 4
    assert reds[:, 0].mean() > blues[:, 0].mean() + cell  # it has walked south
    assert abs(blues[:, 1].mean() - reds[:, 1].mean()) < 2


def test_the_agent_on_the_map_looks_where_it_is_heading() -> None:
    drawn = FloorMap((0.0, 0.0), 1.0, np.ones((4, 4), bool), np.zeros((4, 4, 3), np.uint8))
    view, panorama = np.zeros(VIEW_SHAPE, np.uint8), np.zeros(PANORAMA_SHAPE, np.uint8)
    for heading, side in ((0.0, "north"), (90.0, "west"), (180.0, "south"), (270.0, "east")):
        sight = Sight(view, panorama, np.array([[2.0, 2.0]]), heading, 1, "turn_left")
        frame = rooms_film.frame("a room", drawn, sight)
        reds = np.argwhere((frame == rooms_film.AGENT).all(axis=-1))
        middle = np.median(reds, axis=0)
        ends = (*(middle - reds.min(axis=0)), *(reds.max(axis=0) - middle))
        furthest = dict(zip(("north", "west", "south", "east"), ends, strict=True))
        assert max(furthest, key=furthest.get) == side


def test_every_episode_begins_elsewhere_where_starts_are_random() -> None:
    assert len({tuple(sight.path[0]) for sight in moments("fine", 3, 1, random_starts=True)}) > 1


def test_the_path_begins_anew_where_a_lost_simulators_replacement_does() -> None:
    """It is lost at the third step."""
    assert [len(sight.path) for sight in moments("dead", 1, 4)] == [1, 2, 3, 1, 2]


@pytest.mark.slow
def test_a_run_is_shown_as_a_gif(habitat_run, capsys, tmp_path) -> None:
    out = tmp_path / "walls.gif"
    watch.main([str(habitat_run.root), "--out", str(out), "--steps", "2"])
    assert "saved" in capsys.readouterr().out
    with Image.open(out) as written:
        assert getattr(written, "n_frames", 1) == 3
    error = refused(watch.main, [str(habitat_run.root), "--terminal"], capsys)
    assert "--terminal is for gridworlds" in error
    error = refused(watch.main, [str(habitat_run.root), "--env", "nowhere"], capsys)
    assert "there is no scene" in error
