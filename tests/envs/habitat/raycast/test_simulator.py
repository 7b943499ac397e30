"""What the embedded simulator shows."""

import numpy as np
import pytest
import trimesh
from shapely import contains_xy

from envs.habitat.raycast.simulator import Raycast, open_scene
from envs.habitat.simulator import (
    AGENT_RADIUS,
    CAMERA_HEIGHT,
    COMPASS,
    FIELD_OF_VIEW_DEGREES,
    FORWARD,
    LEFT,
    RIGHT,
    STEP_LENGTH,
    VIEW_SIZE,
    Pose,
    SimulatorError,
)
from tests.support.scenes import BLUE, GREEN, RED, WHITE, box, four_walls, painted, room

CENTRE = Pose((0.0, 0.0, 0.0), 0.0)


@pytest.fixture(scope="module")
def simulator(scene) -> Raycast:
    return open_scene(scene)


def is_color(pixel: np.ndarray, color: tuple[int, int, int]) -> bool:
    return (pixel > 0).tolist() == [channel > 0 for channel in color]


def test_shows_in_each_direction_what_stands_there(simulator) -> None:
    observation = simulator.teleport(CENTRE)
    middle = observation.panorama[:, VIEW_SIZE // 2 - 1, VIEW_SIZE // 2]
    for pixel, color in zip(middle, (RED, GREEN, BLUE, WHITE), strict=True):
        assert is_color(pixel, color)
    assert observation.view.shape == (64, 64, 3)
    assert observation.view.dtype == observation.panorama.dtype == np.uint8


@pytest.mark.parametrize("index", range(4))
def test_panorama_is_the_views_to_the_four_directions(simulator, index) -> None:
    observation = simulator.teleport(Pose((0.3, 0.0, -0.7), COMPASS[index]))
    np.testing.assert_array_equal(observation.view, observation.panorama[index])


def test_the_horizon_and_the_field_of_view_are_where_they_should_be(simulator) -> None:
    # A wall at 2 m: its foot is 0.88 m below the camera, and it is 4 m wide.
    view = simulator.teleport(CENTRE).view
    pixels_per_metre = VIEW_SIZE / 2 / (2 * np.tan(np.radians(FIELD_OF_VIEW_DEGREES / 2)))
    red = (view[..., 0] > 0) & (view[..., 1] == 0)
    foot = VIEW_SIZE / 2 + CAMERA_HEIGHT * pixels_per_metre
    assert red[:, 32].nonzero()[0].max() == np.floor(foot - 0.5)
    top = VIEW_SIZE / 2 - (2.5 - CAMERA_HEIGHT) * pixels_per_metre
    assert red[:, 32].nonzero()[0].min() == np.ceil(top - 0.5)
    assert red[VIEW_SIZE // 2].all()  # 79 degrees see less than 4 m of it
    nearer = simulator.teleport(Pose((0.0, 0.0, 1.5), 0.0)).view[VIEW_SIZE // 2 - 1]
    seen = 3.5 * np.tan(np.radians(FIELD_OF_VIEW_DEGREES / 2))
    assert (nearer[:, 1] == 0).sum() == pytest.approx(VIEW_SIZE * 2 / seen, abs=1)


def test_turning_left_shows_what_is_on_the_left(simulator) -> None:
    simulator.teleport(CENTRE)
    for _ in range(9):
        observation = simulator.step(LEFT)
    assert observation.pose == Pose((0.0, 0.0, 0.0), 90.0)
    assert is_color(observation.view[32, 32], GREEN)
    for _ in range(18):
        observation = simulator.step(RIGHT)
    assert observation.pose.heading == 270.0
    assert is_color(observation.view[32, 32], WHITE)


def test_the_panorama_does_not_depend_on_the_heading(simulator) -> None:
    before = simulator.teleport(CENTRE).panorama.copy()
    np.testing.assert_array_equal(simulator.step(LEFT).panorama, before)
    assert (simulator.step(FORWARD).panorama != before).any()


def test_panoramas_can_be_left_out(simulator, scene) -> None:
    without = open_scene(scene, panoramas=False)
    for each in (simulator, without):
        each.teleport(CENTRE)
    for action in (FORWARD, LEFT, FORWARD):
        seen, wanted = without.step(action), simulator.step(action)
        assert seen.pose == wanted.pose
        np.testing.assert_array_equal(seen.view, wanted.view)
        assert seen.panorama.shape == wanted.panorama.shape
        assert not seen.panorama.any()


def test_steps_ahead_until_something_is_in_the_way(simulator) -> None:
    simulator.teleport(Pose((0.0, 0.0, 0.0), 90.0))
    assert simulator.step(FORWARD).pose.position == pytest.approx((-STEP_LENGTH, 0, 0), abs=1e-6)
    for _ in range(10):
        observation = simulator.step(FORWARD)
    assert observation.pose.position[0] == pytest.approx(-2 + AGENT_RADIUS, abs=1e-3)


def test_a_seed_gives_the_start(simulator) -> None:
    first = simulator.reset(7)
    other = simulator.reset(8)
    again = simulator.reset(7)
    assert first.pose == again.pose != other.pose
    np.testing.assert_array_equal(first.view, again.view)
    assert first.pose.heading == 0.0


def test_positions_survive_float32(simulator) -> None:
    simulator.reset(3)
    for action in (FORWARD, LEFT, FORWARD, RIGHT, RIGHT, FORWARD):
        observation = simulator.step(action)
    exact = np.array(observation.pose.position, np.float32).astype(float).tolist()
    assert tuple(exact) == observation.pose.position
    np.testing.assert_array_equal(simulator.teleport(observation.pose).view, observation.view)


def test_map_shows_floor_and_furniture_from_above(tmp_path) -> None:
    chest = painted(box(((0.5, 0, -1.5), (1.5, 0.6, -0.5))), RED)
    trimesh.Scene([painted(room(), (90, 90, 90)), chest]).export(tmp_path / "room.glb")
    simulator = open_scene(str(tmp_path / "room.glb"))
    drawn = simulator.floor_map(0.1)

    def cell(x: float, z: float) -> tuple[int, int]:
        return int((z - drawn.corner[1]) / 0.1), int((x - drawn.corner[0]) / 0.1)

    assert drawn.walkable.shape == drawn.picture.shape[:2]
    assert not drawn.walkable[cell(1.0, -1.0)]
    assert is_color(drawn.picture[cell(1.0, -1.0)], RED)
    assert drawn.walkable[cell(-1.0, 1.0)]
    assert len(set(drawn.picture[cell(-1.0, 1.0)].tolist())) == 1  # the grey floor
    assert drawn.walkable.sum() * 0.01 == pytest.approx(simulator.floor.area.area, rel=0.05)


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        (None, r"there is no scene '.*x.glb': no such file$"),
        (box(((0, 0, 0), (0.2, 2.0, 0.2))), "has no walkable floor"),
        (trimesh.Trimesh([(0, 0, 0), (0, 1, 0), (0, 1, 1)], [(0, 1, 2)]), "has no walkable floor"),
        (painted(room(1.15, 1.15), RED), r"has no walkable .* --up y or --up z$"),
    ],
)
def test_says_so_where_a_scene_is_not_there_or_has_no_floor(tmp_path, mesh, message) -> None:
    if mesh:
        mesh.export(tmp_path / "x.glb")
    with pytest.raises(SimulatorError, match=message):
        open_scene(str(tmp_path / "x.glb"))


@pytest.mark.parametrize("turn", [0, 90])
def test_a_scene_in_centimetres_is_refused(tmp_path, turn) -> None:
    """The cells of its floor would fill the memory."""
    mesh = room(6, 5, 3)
    mesh.apply_transform(trimesh.transformations.rotation_matrix(np.radians(turn), (1, 0, 0)))
    mesh.apply_scale(100)
    mesh.export(tmp_path / "scene.glb")
    with pytest.raises(SimulatorError, match=r"scene.glb has 600 x .* in metres\?"):
        open_scene(str(tmp_path / "scene.glb"))


def test_a_scene_on_its_side_is_refused_and_opens_with_its_axis(tmp_path) -> None:
    flat = four_walls().to_geometry()
    flat.apply_transform(trimesh.transformations.rotation_matrix(np.pi / 2, (1, 0, 0)))
    flat.export(tmp_path / "flat.glb")
    flat.export(tmp_path / "flat.ply")
    scene = str(tmp_path / "flat.glb")
    with pytest.raises(SimulatorError, match=r"flat.glb seems to be on its side.* --up z$"):
        open_scene(scene)
    upright = open_scene(scene, up="z").floor.area.area
    assert upright == open_scene("flat.ply", tmp_path).floor.area.area > 10
    (tmp_path / "flat.stage_config.json").write_text('{"up": [0, 1, 0]}')
    assert open_scene(scene).floor.area.area < 0.9 * upright  # a description is believed
    with pytest.raises(SimulatorError, match=r"apartment of the package: leave --up out"):
        open_scene("studio", up="y")


def test_scenes_with_objects_need_habitat_sim(tmp_path) -> None:
    (tmp_path / "flat.scene_instance.json").write_text("{}")
    config = '{"scene_instances": {"paths": {".json": ["."]}}}'
    (tmp_path / "some.scene_dataset_config.json").write_text(config)
    with pytest.raises(SimulatorError, match="add --simulator habitat_sim"):
        open_scene("flat", tmp_path)


def test_views_that_were_kept_are_the_views_from_there(simulator, monkeypatch) -> None:
    simulator.reset(3)
    actions = np.random.default_rng(0).integers(0, 3, 80).tolist()
    walked = [simulator.step(action) for action in actions]
    poses = [observation.pose for observation in walked]
    assert len(set(poses)) < len(poses)  # it was at some of them twice
    monkeypatch.setattr("envs.habitat.raycast.renderer.KEPT_VIEWS", 0)
    for observation in walked:
        again = simulator.teleport(observation.pose)
        np.testing.assert_array_equal(again.view, observation.view)
        np.testing.assert_array_equal(again.panorama, observation.panorama)


def test_the_maps_cells_are_asked_at_their_middles(simulator) -> None:
    drawn = simulator.floor_map(0.4)
    rows, columns = np.indices(drawn.walkable.shape)
    x, z = (drawn.corner[axis] + 0.4 * (each + 0.5) for axis, each in enumerate((columns, rows)))
    np.testing.assert_array_equal(drawn.walkable, contains_xy(simulator.floor.area, x, z))


def test_rays_that_hit_nothing_have_a_colour_of_their_own(simulator) -> None:
    """Neither that of a surface without a texture nor black."""
    up = np.array([[0.0, 1.0, 0.0]], np.float32)
    (color,) = simulator._renderer.colors(up, up).tolist()  # from 1 m above the floor
    assert color == [110, 150, 200]
