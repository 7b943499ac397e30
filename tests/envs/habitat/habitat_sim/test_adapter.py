"""habitat-sim: against a strict stand-in always, against itself where it is installed.

`HABITAT_PYTHON` names the interpreter that it is installed in.
"""

import importlib
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import trimesh

from envs.habitat.habitat_sim.temporary_files import description, has_materials, stage_file
from envs.habitat.scenes import FRAMES, Stage
from envs.habitat.simulator import (
    CAMERA_HEIGHT,
    COMPASS,
    FORWARD,
    LEFT,
    RIGHT,
    AgentSize,
    Pose,
    SimulatorError,
)
from envs.habitat.workers.pool import WorkerPool
from envs.habitat.workers.process import Settings
from tests.support import habitat_sim_double as double
from tests.support.ask_workers import reset
from tests.support.scenes import box, painted, room

CENTRE = Pose((0.0, float(np.float32(0.1)), 0.0), 0.0)


@pytest.fixture
def module(monkeypatch):
    """Our side of habitat-sim, with the stand-in behind it."""
    monkeypatch.setitem(sys.modules, "habitat_sim", double)
    monkeypatch.delitem(sys.modules, "envs.habitat.habitat_sim.adapter", raising=False)
    yield importlib.import_module("envs.habitat.habitat_sim.adapter")
    sys.modules.pop("envs.habitat.habitat_sim.adapter", None)
    double.made.clear()


@pytest.fixture
def scene(tmp_path) -> str:
    painted(room(), (200, 100, 50)).export(tmp_path / "room.glb")
    return str(tmp_path / "room.glb")


@pytest.fixture
def simulator(module, scene):
    return module.open_scene(scene, None)


def test_opens_the_scenes_of_the_package_by_name(module) -> None:
    module.open_scene("large_flat", None)
    assert behind().asset.name == "large_flat.glb"


def behind() -> double.Simulator:
    return double.made[-1]


def test_starts_on_the_floor_and_not_on_the_roof(simulator) -> None:
    for seed in range(5):
        pose = simulator.reset(seed).pose
        assert simulator.teleport(pose).pose == pose
        x, y, z = pose.position
        assert (y, abs(x) <= 2, abs(z) <= 2) == (np.float32(0.1), True, True)


def test_a_seed_gives_the_start_and_small_seeds_are_spread(simulator) -> None:
    first, other, again = (simulator.reset(seed).pose for seed in (0, 1, 0))
    assert first == again != other
    assert min(behind().pathfinder.seeds[-3:]) > 1000


def test_shows_the_view_ahead_and_the_four_directions(simulator) -> None:
    observation = simulator.teleport(Pose((1.0, CENTRE.position[1], -1.0), 30.0))
    assert observation.view.shape == (64, 64, 3)
    assert observation.view[0, 0].tolist() == [120, 80, 15]
    assert observation.panorama[:, 0, 0].tolist() == [
        [120, 80, yaw // 2] for yaw in (0, 90, 180, 270)
    ]


def test_the_panorama_is_drawn_again_only_where_the_position_changes(simulator) -> None:
    simulator.teleport(CENTRE)
    drawn = behind().agents[1].drawn
    turned = [simulator.step(LEFT) for _ in range(36)]
    assert turned[-1].pose == CENTRE
    assert behind().agents[1].drawn == drawn
    moved = simulator.step(FORWARD)
    assert moved.pose.position == pytest.approx((0.0, 0.1, -0.25))
    assert behind().agents[1].drawn == drawn + 1
    assert moved.panorama[0, 0, 0].tolist() == [100, 95, 0]
    for _ in range(9):
        simulator.step(RIGHT)
    assert simulator.step(FORWARD).pose.position == pytest.approx((0.25, 0.1, -0.25), abs=1e-6)


def test_says_so_where_a_place_is_not_on_the_floor(simulator) -> None:
    with pytest.raises(SimulatorError, match=r"\(9\.00, 0\.10, 0\.00\) is not on the walkable"):
        simulator.teleport(Pose((9.0, 0.1, 0.0), 0.0))
    with pytest.raises(SimulatorError, match=r"near it is \(2\.00, 0\.10, 0\.00\)"):
        simulator.teleport(Pose((3.0, 0.1, 0.0), 0.0))
    near = simulator.teleport(Pose((2.05, 0.0, 0.0), 0.0))
    assert near.pose.position == pytest.approx((2.0, 0.1, 0.0))


def test_draws_a_map(simulator) -> None:
    drawn = simulator.floor_map(0.5)
    assert drawn.corner == (-2.25, -2.25)  # habitat-sim looks at the corners of cells
    assert drawn.walkable.shape == (8, 8)
    assert drawn.walkable[0].tolist() == [False] * 3 + [True] * 5  # neither wall nor roof
    assert drawn.picture.shape == (8, 8, 3)


def test_the_agent_has_the_size_asked_for_and_the_same_camera(module, scene) -> None:
    for arguments, (radius, height) in (((), (0.1, 1.5)), ((AgentSize(0.2, 0.9),), (0.2, 0.9))):
        simulator = module.open_scene(scene, None, *arguments)
        mesh = behind().navigation
        for agent in behind().agents:
            assert (agent.config.radius, agent.config.height) == (radius, height)
            for camera in agent.config.sensor_specifications:
                assert camera.position == [0.0, CAMERA_HEIGHT - mesh.cell_height, 0.0]
        assert (mesh.agent_radius, mesh.agent_height) == (radius, height)
        assert simulator.teleport(Pose((2 + 0.9 * radius, 0.1, 0.0), 0.0)).pose.position[0] == 2
        with pytest.raises(SimulatorError, match="is not on the walkable floor"):
            simulator.teleport(Pose((2 + 1.1 * radius, 0.1, 0.0), 0.0))


def test_cameras_and_steps_are_the_published_ones_and_the_agent_slides(simulator) -> None:
    assert behind().slides
    walker, compass = (agent.config for agent in behind().agents)
    for camera in (*walker.sensor_specifications, *compass.sensor_specifications):
        assert (camera.hfov, camera.resolution) == (79.0, [64, 64])
    amounts = {name: each.actuation.amount for name, each in walker.action_space.items()}
    assert amounts == {"move_forward": 0.25, "turn_left": 10.0, "turn_right": 10.0}


def test_says_so_where_nobody_can_walk(module, scene) -> None:
    unwalkable = Path(scene).with_name("unwalkable.glb")
    unwalkable.write_bytes(Path(scene).read_bytes())
    with pytest.raises(SimulatorError, match=r"has no walkable floor.* --up y or --up z"):
        module.open_scene(str(unwalkable), None)
    tiny = Path(scene).rename(Path(scene).with_name("tiny.glb"))
    with pytest.raises(SimulatorError, match=r"only 0.80 square metres of walkable floor.* --up y"):
        module.open_scene(str(tiny), None)


def test_a_scene_on_its_side_is_refused_and_opens_with_its_axis(module, scene) -> None:
    sideways = str(Path(scene).rename(Path(scene).with_name("sideways.glb")))
    with pytest.raises(SimulatorError, match=r"3.2 square metres .* instead of 16.0: .* --up z$"):
        module.open_scene(sideways, None)
    module.open_scene(sideways, None, up="z")
    assert behind().stage["front"] == [0, 1, 0]
    config = {"up": [0, 1, 0], "front": [0, 0, -1]}  # a description is believed
    Path(sideways).with_suffix(".stage_config.json").write_text(json.dumps(config))
    module.open_scene(sideways, None)
    assert (behind().stage["up"], len(behind().opened)) == ([0, 1, 0], 1)


def test_a_tower_is_compared_with_its_turned_self_and_opened_again(module, scene) -> None:
    tower = str(Path(scene).rename(Path(scene).with_name("tower.glb")))
    module.open_scene(tower, None)
    assert (len(behind().opened), behind().stage["up"]) == (3, [0, 1, 0])


def test_damaged_files_do_not_reach_habitat_sim(module, scene) -> None:
    whole = Path(scene).read_bytes()
    Path(scene).write_bytes(whole[: len(whole) // 2])
    before = len(double.made)
    with pytest.raises(SimulatorError, match=r"cannot be read as a scene: it is not a whole .glb"):
        module.open_scene(scene, None)
    assert len(double.made) == before


def test_starts_quickly_where_everything_has_a_material(module, scene, monkeypatch) -> None:
    monkeypatch.chdir(Path(scene).parent)
    before = Path.cwd()
    module.open_scene("room.glb", None)
    assert behind().config_file
    plain = Path(scene).with_name("plain.glb")
    room().export(plain)
    module.open_scene("plain.glb", None)
    assert behind().config_file == has_materials(plain)
    assert Path.cwd() == before
    assert not list(before.glob("data*"))


def test_a_ply_of_replica_is_turned_by_habitat_sim_itself(tmp_path) -> None:
    for name, up, expected in (
        ("mesh_semantic.ply", "z", ((0, 1, 0), (0, 0, -1))),
        ("mesh_semantic.ply", "y", ((0, 0, -1), (0, -1, 0))),
        ("mesh.ply", "z", ((0, 0, 1), (0, 1, 0))),
    ):
        stage = Stage(
            *(tmp_path / name, FRAMES[up], "option"),
            {"origin": [1, 2, 3], "scale": [2, 2, 2], "nav_asset": "x"},
        )
        described = description(stage)
        assert Path(described.pop("render_asset")) == tmp_path / name
        assert described.pop("scale") == [2, 2, 2]
        assert described == {"origin": [1, 2, 3], "up": expected[0], "front": expected[1]}


def test_another_ply_is_given_a_name_that_habitat_sim_turns(tmp_path) -> None:
    (tmp_path / "scan.ply").write_bytes(b"ply")
    for up, linked in (("z", True), ("y", False)):
        stage = Stage(tmp_path / "scan.ply", FRAMES[up], "option", {})
        with stage_file(stage) as file:
            described = json.loads(file.path.read_text())
            asset = Path(described["render_asset"])
            assert asset.read_bytes() == b"ply"
        assert asset.name == ("scan_semantic.ply" if linked else "scan.ply")
        assert described["up"] == [0, 1, 0]


def test_objects_of_a_scene_stand_in_the_way(module, tmp_path) -> None:
    (tmp_path / "scenes").mkdir()
    (tmp_path / "scenes" / "flat.scene_instance.json").write_text("{}")
    config = {"scene_instances": {"paths": {".json": ["scenes"]}}}
    (tmp_path / "some.scene_dataset_config.json").write_text(json.dumps(config))
    module.open_scene("flat", tmp_path)
    assert behind().navigation.include_static_objects
    with pytest.raises(SimulatorError, match="leave --up out"):
        module.open_scene("flat", tmp_path, up="z")


@pytest.fixture(scope="module")
def python() -> str:
    named = os.environ.get("HABITAT_PYTHON")
    if not named:
        pytest.skip("HABITAT_PYTHON names no interpreter with habitat-sim")
    return named


@pytest.fixture
def opened(python):
    """Open a scene with the real one."""
    pools = []

    def open_scene(*arguments, **settings) -> WorkerPool:
        settings = Settings(*arguments, simulator="habitat_sim", python=python, **settings)
        pools.append(WorkerPool(settings, 1))
        return pools[-1]

    yield open_scene
    for pool in pools:
        pool.close()


def turned(mesh: trimesh.Trimesh) -> trimesh.Trimesh:
    """Turn a mesh with y up into one with z up."""
    mesh = mesh.copy()
    mesh.apply_transform(trimesh.transformations.rotation_matrix(np.pi / 2, (1, 0, 0)))
    return mesh


def floor_area(workers: WorkerPool) -> float:
    return float(workers.floor_map(0.05).walkable.sum() * 0.05**2)


def test_the_real_one_opens_scenes_with_z_up(opened, tmp_path) -> None:
    mesh = room()
    turned(painted(mesh, (200, 100, 50))).export(tmp_path / "flat.glb")
    scene = str(tmp_path / "flat.glb")
    with pytest.raises(SimulatorError, match=r"seems to be on its side.* --up z$"):
        opened(scene)
    plain = trimesh.Trimesh(mesh.vertices, mesh.faces, vertex_colors=[200, 100, 50, 255])
    (tmp_path / "habitat").mkdir()
    turned(plain).export(tmp_path / "mesh.ply")
    turned(plain).export(tmp_path / "habitat" / "mesh_semantic.ply")
    config = {"render_asset": "../mesh.ply", "nav_asset": "mesh_semantic.navmesh"}
    replica = tmp_path / "habitat" / "replica_stage.stage_config.json"
    replica.write_text(json.dumps(config))
    for workers in (
        opened(scene, up="z"),
        opened(str(tmp_path / "mesh.ply")),
        opened(str(tmp_path / "habitat" / "mesh_semantic.ply")),
        opened(str(replica)),
        opened(tmp_path.name, folder=tmp_path.parent),
    ):
        assert floor_area(workers) == pytest.approx(3.7**2, abs=0.4)  # in whole cells
        (start,) = reset(workers, [1])
        assert 0 <= start.position[1] <= 0.021


def test_the_real_one_places_the_objects_of_a_scene(opened, tmp_path) -> None:
    for name, mesh in (("flat", room()), ("chest", box(((-0.5, 0, -0.5), (0.5, 0.5, 0.5))))):
        painted(mesh, (200, 100, 50)).export(tmp_path / f"{name}.glb")
    upright = {"up": [0, 1, 0], "front": [0, 0, -1]}
    files = {
        "flat.stage_config.json": {"render_asset": "flat.glb", **upright},
        "chest.object_config.json": {"render_asset": "chest.glb", **upright},
        "one.scene_instance.json": {
            "stage_instance": {"template_name": "flat"},
            "object_instances": [
                {"template_name": "chest", "translation": [1, 0.25, 1], "motion_type": "STATIC"}
            ],
        },
        "some.scene_dataset_config.json": {
            "stages": {"paths": {".json": ["."]}},
            "objects": {"paths": {".json": ["."]}},
            "scene_instances": {"paths": {".json": ["."]}},
        },
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    drawn = opened("one", folder=tmp_path).floor_map(0.05)
    column, row = (int((1.0 - corner) / 0.05) for corner in drawn.corner)
    assert not drawn.walkable[row, column]  # the chest stands there
    assert 12 < drawn.walkable.sum() * 0.05**2 < 13  # of 13.7 square metres without it


def test_the_real_one_plays_our_apartments(opened) -> None:
    real = opened("studio")
    assert real.hello.simulator == "habitat_sim"
    (start,) = real.reset([1])
    assert 0 <= start.position[1] <= 0.021  # on the floor, and not on the roof
    before = real.images.views.copy(), real.images.panoramas.copy()
    assert before[0].std() > 5
    for _ in range(36):
        (pose,) = real.step([LEFT])
    assert pose == start
    np.testing.assert_array_equal(real.images.views, before[0])
    np.testing.assert_array_equal(real.images.panoramas, before[1])
    moved = [real.step([FORWARD])[0] for _ in range(4)]
    assert all(abs(pose.position[1]) < 0.3 for pose in moved)
    assert real.teleport([start]) == [start]
    np.testing.assert_array_equal(real.images.views, before[0])
    for heading, seen in zip(COMPASS, real.images.panoramas[0].astype(int), strict=True):
        real.teleport([start._replace(heading=heading)])
        assert np.abs(real.images.views[0].astype(int) - seen).max() <= 1
