"""Both simulators play the same: walks, heights, walkable areas and pictures.

`HABITAT_PYTHON` names the interpreter that habitat-sim is installed in.
"""

import os
from typing import NamedTuple

import numpy as np
import pytest

from envs.habitat.simulator import FORWARD, STEP_LENGTH, Pose
from envs.habitat.workers.pool import WorkerPool
from envs.habitat.workers.process import Settings
from tests.support.ask_workers import step, teleport

APARTMENTS = ("bedroom", "studio", "two_rooms", "large_flat")
ACTIONS, WALKS = 500, 3
CELL = 0.05


class Walk(NamedTuple):
    positions: np.ndarray  # [A + 1, 3]
    headings: np.ndarray  # [A + 1]


class Both(NamedTuple):
    real: WorkerPool
    ours: WorkerPool


@pytest.fixture(scope="module", params=APARTMENTS)
def both(request):
    python = os.environ.get("HABITAT_PYTHON")
    if not python:
        pytest.skip("HABITAT_PYTHON names no interpreter with habitat-sim")
    real = WorkerPool(Settings(request.param, "habitat_sim", python=python), 1)
    ours = WorkerPool(Settings(request.param), 1)
    yield Both(real, ours)
    real.close()
    ours.close()


def play(workers: WorkerPool, start: Pose, actions: np.ndarray) -> Walk:
    (pose,) = teleport(workers, [start])
    poses = [pose]
    for action in actions:
        poses += step(workers, [int(action)])
    positions, headings = zip(*poses, strict=True)
    return Walk(np.array(positions), np.array(headings))


def flat_distance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.hypot(*(one - other)[..., [0, 2]].T)


def first_wall(walk: Walk, actions: np.ndarray) -> int:
    """The first step that a wall shortened, or the number of steps."""
    moved = flat_distance(walk.positions[1:], walk.positions[:-1])
    met = np.flatnonzero((actions == FORWARD) & (moved < STEP_LENGTH - 1e-3))
    return int(met[0]) if len(met) else len(actions)


def test_walks_are_the_same_in_both(both) -> None:
    ends = []
    for seed in range(WALKS):
        actions = np.random.default_rng(seed).choice(3, ACTIONS, p=(0.6, 0.2, 0.2))
        (start,) = both.real.reset([seed])
        real, ours = (play(each, start._replace(heading=0.0), actions) for each in both)
        np.testing.assert_array_equal(real.headings, ours.headings)
        assert np.abs(real.positions[:, 1] - ours.positions[:, 1]).max() <= 0.02
        apart = flat_distance(real.positions, ours.positions)
        assert apart[: first_wall(real, actions) + 1].max() <= 0.05
        ends.append(apart[-1])
    # A walk may pass an obstacle that the other one is stopped by: one of twelve does.
    assert np.median(ends) <= 0.3


def test_pictures_at_equal_poses_are_alike(both) -> None:
    differences = []
    for seed in range(12):
        poses = both.real.reset([seed])
        (ours,) = both.ours.teleport(poses)
        if flat_distance(np.array(ours.position), np.array(poses[0].position)) < 1e-3:
            views = [each.images.views[0].astype(int) for each in both]
            differences.append(np.abs(views[0] - views[1]).mean())
    assert len(differences) > 8
    assert np.mean(differences) <= 6  # single ones up to 8: edges of furniture, textures close by


def test_the_walkable_areas_are_alike(both) -> None:
    real, ours = (placed(each) for each in both)
    assert len(real & ours) >= 0.9 * len(real | ours)


def placed(workers: WorkerPool) -> set[tuple[int, int]]:
    """The walkable cells of a scene, in multiples of `CELL`."""
    drawn = workers.floor_map(CELL)
    rows, columns = np.nonzero(drawn.walkable)
    x, z = (corner + CELL / 2 for corner in drawn.corner)
    cells = np.round((x / CELL + columns, z / CELL + rows)).astype(int)
    return set(zip(*cells.tolist(), strict=True))
