"""The nine furnished apartments."""

import subprocess
import sys
from functools import cache

import numpy as np
import pytest
import shapely

from envs.habitat.apartments import NAMES, make_apartment
from envs.habitat.apartments.__main__ import main
from envs.habitat.apartments.files import write
from envs.habitat.apartments.plans import PLANS
from envs.habitat.mesh import Mesh
from envs.habitat.raycast.floor import find_floor
from envs.habitat.raycast.scene_file import read
from envs.habitat.raycast.simulator import Raycast
from envs.habitat.scenes import read_stage
from envs.habitat.simulator import AGENT_RADIUS
from tests.support.families import others_slow

DRAWN_BY_DEFAULT = ("hotel_suite", "studio", "large_flat")  # other tests need these, too


@cache
def drawn(name: str) -> Mesh:
    return make_apartment(name)


def test_there_are_nine_from_one_room_to_eight() -> None:
    assert len(NAMES) == 9
    sizes = sorted(len(plan.rooms) for plan in PLANS.values())
    assert (sizes[0], sizes[-1]) == (1, 8)


def test_the_largest_is_of_apartment_zeros_size() -> None:
    span = np.ptp(drawn("large_flat").vertices, axis=0)
    assert 85 < span[0] * span[2] < 105


@pytest.mark.parametrize("name", others_slow(NAMES, DRAWN_BY_DEFAULT))
def test_every_room_can_be_walked_to(name) -> None:
    floor = find_floor(drawn(name).vertices, drawn(name).faces)
    assert floor.height == 0.0
    for x0, z0, x1, z1 in PLANS[name].rooms.values():
        free = floor.area.intersection(shapely.box(x0, z0, x1, z1)).area
        assert free > 0.15 * ((x1 - x0) - 2 * AGENT_RADIUS) * ((z1 - z0) - 2 * AGENT_RADIUS)


@pytest.mark.parametrize("name", others_slow(NAMES, DRAWN_BY_DEFAULT))
def test_meshes_are_small_and_closed(name) -> None:
    surface = drawn(name)
    assert 300 < len(surface.faces) < 5000
    simulator = Raycast(surface)
    for seed in range(3):
        moment = simulator.reset(seed)
        outside = (moment.panorama == (110, 150, 200)).all(axis=-1)
        assert outside.mean() < 0.001  # there are no gaps to look out through


def test_rooms_are_told_apart_by_what_one_sees() -> None:
    # Views of different places differ in colour, and are neither dark nor glaring.
    simulator = Raycast(drawn("large_flat"))
    views = np.array([simulator.reset(seed).view for seed in range(12)], float)
    assert 60 < views.mean() < 190
    assert views.std(axis=(1, 2)).mean() > 20
    means = views.mean(axis=(1, 2))
    assert np.linalg.norm(means[:, None] - means, axis=-1).max() > 40


def test_a_name_always_gives_the_same_apartment() -> None:
    again = make_apartment("studio")
    for one, other in zip(again[:-1], drawn("studio")[:-1], strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(again.textures[0], drawn("studio").textures[0])


def test_the_file_is_the_same_apartment(tmp_path) -> None:
    surface = read(read_stage(write("hotel_suite", tmp_path)))
    drawn_one, read_one = Raycast(drawn("hotel_suite")), Raycast(surface)
    for seed in range(3):
        one, other = drawn_one.reset(seed), read_one.reset(seed)
        assert one.pose == other.pose
        different = (one.panorama != other.panorama).any(axis=-1).mean()
        assert different < 0.01  # texels on the edge of two, by rounding


def test_command_writes_them_and_overwrites_nothing(tmp_path, capsys) -> None:
    assert main([str(tmp_path / "new"), "study", "bedroom"]) == 0
    assert capsys.readouterr().out.split() == [
        str(tmp_path / "new" / name) for name in ("study.glb", "bedroom.glb")
    ]
    written = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert written == ["bedroom.glb", "bedroom.stage_config.json",
                       "study.glb", "study.stage_config.json"]  # fmt: skip
    assert main([str(tmp_path / "new"), "large_flat", "study"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "already exists" in err
    assert len(list((tmp_path / "new").iterdir())) == 4


WITHOUT_THE_EXTRA = """
import runpy
import sys

sys.modules.update(dict.fromkeys(["embreex", "trimesh", "shapely", "PIL"]))
sys.argv = ["apartments", sys.argv[1]]
runpy.run_module("envs.habitat.apartments", run_name="__main__")
"""


def test_command_says_in_one_line_that_the_extra_is_missing(tmp_path) -> None:
    command = [sys.executable, "-c", WITHOUT_THE_EXTRA, str(tmp_path / "new")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert "pip install 'cbet-jax[habitat]'" in ended.stderr
    assert not (tmp_path / "new").exists()


def test_command_says_no_in_one_line(tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("mine")
    for arguments in ([str(tmp_path), "castle"], [str(tmp_path / "file")]):
        assert main(arguments) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
