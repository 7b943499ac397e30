"""The nine furnished apartments."""

import hashlib

import numpy as np
import pytest

from envs.habitat.apartments import NAMES, apartment_file
from envs.habitat.raycast import apartment_file as exact
from envs.habitat.raycast import scene_file
from envs.habitat.raycast.simulator import Raycast, open_scene
from envs.habitat.scenes import read_stage

# Of views, panoramas and places: the package's results and policies depend on them, to the bit.
DIGESTS = {
    "bedroom": "bc3f2f6a7e323689",
    "living_room": "e628a8383b1802d2",
    "study": "900d591972123464",
    "office": "06f3cf89668347ef",
    "hotel_suite": "39d4288b38237ae2",
    "studio": "5f038af2e0211ab8",
    "two_rooms": "7cb57d1dc973aa0a",
    "family_flat": "bf28257d8de36080",
    "large_flat": "1848969e695df13d",
}


def looked_around(simulator: Raycast) -> str:
    seen = hashlib.sha256()
    for seed in range(3):
        moment = simulator.reset(seed)
        for part in (moment.view, moment.panorama, np.array(moment.pose.position)):
            seen.update(part.tobytes())
    return seen.hexdigest()[:16]


@pytest.mark.parametrize("name", NAMES)
def test_views_are_those_of_earlier_versions_and_have_no_gaps(name) -> None:
    simulator = open_scene(name)
    assert simulator.floor.height == 0.0
    assert looked_around(simulator) == DIGESTS[name]
    for seed in range(3):
        outside = (simulator.reset(seed).panorama == (110, 150, 200)).all(axis=-1)
        assert outside.mean() < 0.001


def test_any_reader_finds_the_same_apartment() -> None:
    path = apartment_file("hotel_suite")
    own, trimesh = (Raycast(each) for each in (exact.read(path), scene_file.read(read_stage(path))))
    for seed in range(3):
        one, other = own.reset(seed), trimesh.reset(seed)
        assert one.pose == other.pose
        different = (one.panorama != other.panorama).any(axis=-1).mean()
        assert different < 0.01  # texels on the edge of two, by rounding
