"""The nine furnished apartments."""

from pathlib import Path

import numpy as np
import pytest

from envs.habitat.apartments import FOLDER, NAMES
from envs.habitat.raycast import scene_file
from envs.habitat.raycast.mesh import read_apartment
from envs.habitat.raycast.simulator import Raycast, open_scene
from envs.habitat.scenes import read_stage

# Places and views (means of 8 x 8 pixels) of earlier versions: results and policies depend on them.
# Single pixels depend on the processor: Embree has code for each.
EARLIER = np.load(Path(__file__).with_name("apartment_views.npz"))


def looked_around(simulator: Raycast) -> tuple[np.ndarray, np.ndarray]:
    """Return three places, [3, 3], and what is seen there, [3, 5, 8, 8, 3]."""
    seen = [simulator.reset(seed) for seed in range(3)]
    views = np.stack([[moment.view, *moment.panorama] for moment in seen])
    blocks = views.reshape(3, 5, 8, 8, 8, 8, 3)
    return np.array([moment.pose.position for moment in seen]), blocks.mean(axis=(3, 5))


@pytest.mark.parametrize("name", NAMES)
def test_views_are_those_of_earlier_versions_and_have_no_gaps(name) -> None:
    simulator = open_scene(name)
    assert simulator.floor.height == 0.0
    places, views = looked_around(simulator)
    np.testing.assert_allclose(places, EARLIER[f"{name}_places"], atol=1e-5)
    np.testing.assert_allclose(views, EARLIER[f"{name}_views"], atol=8)  # two pixels of 64
    for seed in range(3):
        outside = (simulator.reset(seed).panorama == (110, 150, 200)).all(axis=-1)
        assert outside.mean() < 0.001


def test_any_reader_finds_the_same_apartment() -> None:
    path = FOLDER / "hotel_suite.glb"
    own, trimesh = (
        Raycast(each) for each in (read_apartment(path), scene_file.read(read_stage(path)))
    )
    for seed in range(3):
        one, other = own.reset(seed), trimesh.reset(seed)
        assert one.pose == other.pose
        different = (one.panorama != other.panorama).any(axis=-1).mean()
        assert different < 0.01  # texels on the edge of two, by rounding
