"""Run habitat-sim 0.3, headless and reproducibly.

The interpreter in which habitat-sim is installed runs this file: Python 3.9 or newer. A process
holds only one simulator, because habitat-sim renders in one thread, does not survive a fork, and
a second simulator would share its graphics context.
"""

import hashlib
import math
from functools import partial
from pathlib import Path
from typing import Any, Optional, Union

import habitat_sim
import numpy as np

from envs.habitat.habitat_sim.temporary_files import stage_file, without_light_maps
from envs.habitat.scene_check import check_area, check_file, check_upright
from envs.habitat.scenes import Frame, SceneFile, Stage, find_scene, line, read_stage
from envs.habitat.simulator import (
    ACTIONS,
    BLACK,
    CAMERA_HEIGHT,
    COMPASS,
    FIELD_OF_VIEW_DEGREES,
    FORWARD,
    MAX_STEP_HEIGHT,
    PUBLISHED_AGENT,
    STEP_LENGTH,
    TURN_DEGREES,
    VIEW_SIZE,
    AgentSize,
    FloorMap,
    Observation,
    Pose,
    Position,
    SimulatorError,
    as_float32,
    turn,
)

_FIRST_EGL_DEVICE = -1  # 0 is the first CUDA device; without one habitat-sim exits
_WALKER, _COMPASS_AGENT = 0, 1  # indices of the two agents
_EYE = "rgb"  # name of the walker's camera
_MAX_TRIES = 100
_ISLAND_SHARE = 0.2  # islands with less of the largest one's area (perhaps a roof's) are ignored
_PROBES = 10  # points sampled for the height of an island
_CELL_HEIGHT = 0.02  # metres; the agent stands up to this far above the floor (published: 0.2)
_TOLERANCE = 1e-3  # metres between a point and the nearest one of the navigation mesh
_FLOOR_GREY, _WALL_GREY = 200, 60


class HabitatSim:
    """One agent (the walker) in one scene, and a second agent with the panorama's four cameras.

    The second agent follows the walker's position but never turns, so a turn of the walker does not
    render the panorama again.
    """

    name = "habitat_sim"
    version = str(habitat_sim.__version__)
    renderer = "OpenGL through EGL"

    def __init__(
        self, scene: Union[Stage, SceneFile], agent: AgentSize, panoramas: bool = True
    ) -> None:
        """Open a stage or a data set's scene, and compute its navigation mesh (`open_scene`)."""
        self._agent = agent
        self._sim: Any = None
        self._load(scene)
        area = self._floor_area()
        check_area(scene.path, area)
        if isinstance(scene, Stage):
            check_upright(scene, self._size(), area, partial(self._floor_area_in, scene))
        self._island = self._choose_island()
        self._pose = Pose((0.0, 0.0, 0.0), 0.0)
        self._panoramas = panoramas
        self._panorama: Optional[np.ndarray] = None  # at the pose's position

    def _load(self, scene: Union[Stage, SceneFile]) -> None:
        """Open a scene in place of the last one; raise SimulatorError if habitat-sim cannot."""
        settings = _navigation(self._agent)
        with stage_file(scene) as file, without_light_maps(scene.path):
            configuration = _configuration(file, settings, self._agent)
            try:
                if self._sim is None:
                    self._sim = habitat_sim.Simulator(configuration)
                else:
                    self._sim.reconfigure(configuration)
            except Exception as error:  # AssertionError, ValueError, and others
                raise SimulatorError(
                    f"habitat-sim cannot open {scene.path}: {line(error)}"
                ) from error
        if file.dataset is not None:
            self._make_obstacles(settings)
        self._paths = self._sim.pathfinder

    def _make_obstacles(self, settings: Any) -> None:
        """Turn the scene's objects into obstacles."""
        objects = self._sim.get_rigid_object_manager().get_objects_by_handle_substring()
        for each in objects.values():
            each.motion_type = habitat_sim.physics.MotionType.STATIC
        settings.include_static_objects = True
        self._sim.recompute_navmesh(self._sim.pathfinder, settings)

    def _floor_area(self) -> float:
        """Return the area of the agent's island, in m2."""
        if not self._paths.is_loaded or not self._paths.num_islands:
            return 0.0
        return float(self._paths.island_area(self._choose_island()))

    def _floor_area_in(self, stage: Stage, frame: Frame) -> float:
        """Return the stage's floor in another frame, in m2, and reopen it in its own."""
        self._load(stage._replace(frame=frame))
        area = self._floor_area()
        self._load(stage)
        return area

    def _size(self) -> tuple[float, float, float]:
        """Return the width, height and depth of the scene, in metres."""
        low, high = self._paths.get_bounds()
        width, height, depth = (float(high[k] - low[k]) for k in range(3))
        return width, height, depth

    def reset(self, seed: int) -> Observation:
        """Move the agent to a place on the walkable floor drawn from `seed`, with heading 0.

        Raises:
            SimulatorError: no place was found.
        """
        self._sim.seed(_hash_seed(seed))
        return self._observe_from(Pose(self._random_point(self._island), 0.0))

    def teleport(self, pose: Pose) -> Observation:
        """Move the agent to a given pose, or refuse it (`Simulator.teleport`)."""
        heading = float(np.float32(pose.heading) % np.float32(360.0))
        return self._observe_from(Pose(self._snap(pose.position), heading))

    def step(self, action: int) -> Observation:
        """Take an action. The agent slides along obstacles."""
        position, heading = self._pose
        if action != FORWARD:
            return self._observe_from(Pose(position, turn(heading, action)))
        images = self._sim.step(ACTIONS[FORWARD])
        moved = as_float32(tuple(self._sim.get_agent(_WALKER).get_state().position))
        return self._observation(Pose(moved, heading), images)

    def floor_map(self, cell: float) -> FloorMap:
        """Return the walkable floor from above, with cells of `cell` metres."""
        low, _ = self._paths.get_bounds()
        height = self._random_point(self._island)[1]
        walkable = np.array(self._paths.get_topdown_island_view(cell, height)) == self._island
        grey = np.where(walkable, _FLOOR_GREY, _WALL_GREY).astype(np.uint8)
        corner = float(low[0]) - cell / 2, float(low[2]) - cell / 2  # cells are asked at corners
        return FloorMap(corner, cell, walkable, np.repeat(grey[..., None], 3, axis=-1))

    def close(self) -> None:
        """Close the simulator."""
        self._sim.close()

    def _observe_from(self, pose: Pose) -> Observation:
        """Move the walker exactly to a pose: habitat-sim's own turns add rounding errors."""
        self._sim.get_agent(_WALKER).set_state(_state(pose), is_initial=True)
        return self._observation(pose, self._sim.get_sensor_observations(_WALKER))

    def _observation(self, pose: Pose, images: Any) -> Observation:
        if not self._panoramas:
            self._panorama = BLACK
        elif self._panorama is None or pose.position != self._pose.position:
            self._panorama = self._render_panorama(pose.position)
        self._pose = pose
        return Observation(pose, _colors(images[_EYE]), self._panorama)

    def _render_panorama(self, position: Position) -> np.ndarray:
        """Render the views in the `COMPASS` directions, uint8 [4, 64, 64, 3]."""
        self._sim.get_agent(_COMPASS_AGENT).set_state(_state(Pose(position, 0.0)), is_initial=True)
        images = self._sim.get_sensor_observations(_COMPASS_AGENT)
        return np.stack([_colors(images[_camera(yaw)]) for yaw in COMPASS])

    def _snap(self, position: Position) -> Position:
        """Return the nearest position on the floor."""
        given = np.array(as_float32(position), np.float32)
        nearest = np.array(self._paths.snap_point(given, self._island), np.float32)
        if not np.isfinite(nearest).all():  # there is no floor nearby
            raise SimulatorError(f"{_text(given)} is not on the walkable floor")
        away, above = float(np.hypot(*(nearest - given)[[0, 2]])), abs(float(nearest[1] - given[1]))
        if away > self._agent.radius or above > 2 * MAX_STEP_HEIGHT:
            raise SimulatorError(
                f"{_text(given)} is not on the walkable floor; near it is {_text(nearest)}"
            )
        return as_float32(tuple(given if max(away, above) <= _TOLERANCE else nearest))

    def _random_point(self, island: int) -> Position:
        """Return a random point of an island of the navigation mesh."""
        for _ in range(_MAX_TRIES):
            point = np.array(self._paths.get_random_navigable_point(island_index=island))
            if np.isfinite(point).all():
                return as_float32(tuple(point))
        raise SimulatorError("found no start position on the scene's floor")

    def _choose_island(self) -> int:
        """Return the lowest of the large islands. The largest may be a roof."""
        islands = range(self._paths.num_islands)
        areas = [self._paths.island_area(island) for island in islands]
        large = [island for island in islands if areas[island] >= _ISLAND_SHARE * max(areas)]
        heights = {
            island: float(np.median([self._random_point(island)[1] for _ in range(_PROBES)]))
            for island in large
        }
        return min(large, key=lambda island: heights[island])


def open_scene(
    scene: str,
    folder: Optional[Path],
    agent: AgentSize = PUBLISHED_AGENT,
    up: Optional[str] = None,
    panoramas: bool = True,
) -> HabitatSim:
    """Open a scene.

    Args:
        scene: path of a file that habitat-sim reads, or a name within `folder`.
        folder: folder of a data set such as Replica, or its `*.scene_dataset_config.json`.
        agent: size of the agent.
        up: axis that points up in the file, `y` or `z` (None: as the file says).
        panoramas: whether to render panoramas; otherwise they are black.

    Raises:
        SimulatorError: the scene is missing, damaged, on its side, or short of walkable floor.
    """
    found = find_scene(scene, folder)
    if found.dataset is not None:
        if up is not None:
            raise SimulatorError(f"{found.dataset} says which way is up: leave --up out")
        described = SceneFile(found.path.resolve(), found.dataset.resolve())
        return HabitatSim(described, agent, panoramas)
    stage = read_stage(found.path.resolve(), up)
    check_file(stage.path)
    return HabitatSim(stage, agent, panoramas)


def _configuration(scene: SceneFile, settings: Any, size: AgentSize) -> Any:
    backend = habitat_sim.SimulatorConfiguration()
    backend.scene_id = str(scene.path)
    if scene.dataset is not None:
        backend.scene_dataset_config_file = str(scene.dataset)
    backend.gpu_device_id = _FIRST_EGL_DEVICE
    backend.enable_physics = False
    backend.load_semantic_mesh = False
    backend.allow_sliding = True
    backend.navmesh_settings = settings
    walker = _agent({_EYE: 0.0}, size)
    walker.action_space = {
        ACTIONS[FORWARD]: habitat_sim.ActionSpec(
            ACTIONS[FORWARD], habitat_sim.ActuationSpec(amount=STEP_LENGTH)
        ),
        **{
            turn: habitat_sim.ActionSpec(turn, habitat_sim.ActuationSpec(amount=TURN_DEGREES))
            for turn in ACTIONS[FORWARD + 1 :]
        },
    }
    compass = _agent({_camera(yaw): yaw for yaw in COMPASS}, size)
    return habitat_sim.Configuration(backend, [walker, compass])


def _agent(cameras: dict, size: AgentSize) -> Any:
    """Return an agent with a camera for each name, turned left by the given degrees."""
    agent = habitat_sim.AgentConfiguration()
    agent.height, agent.radius = size.height, size.radius
    sensors = []
    for name, yaw in cameras.items():
        camera = habitat_sim.CameraSensorSpec()
        camera.uuid = name
        camera.sensor_type = habitat_sim.SensorType.COLOR
        camera.resolution = [VIEW_SIZE, VIEW_SIZE]
        camera.hfov = FIELD_OF_VIEW_DEGREES
        camera.position = [0.0, CAMERA_HEIGHT - _CELL_HEIGHT, 0.0]
        camera.orientation = [0.0, math.radians(yaw), 0.0]
        sensors.append(camera)
    agent.sensor_specifications = sensors
    return agent


def _navigation(agent: AgentSize) -> Any:
    settings = habitat_sim.NavMeshSettings()
    settings.set_defaults()
    settings.agent_radius, settings.agent_height = agent.radius, agent.height
    settings.cell_height = _CELL_HEIGHT
    return settings


def _camera(yaw: float) -> str:
    return f"rgb_{yaw:.0f}"


def _state(pose: Pose) -> Any:
    half = math.radians(pose.heading) / 2
    state = habitat_sim.AgentState()
    state.position = np.array(pose.position, np.float32)
    state.rotation = [0.0, math.sin(half), 0.0, math.cos(half)]  # x, y, z, w
    return state


def _colors(image: np.ndarray) -> np.ndarray:
    """Return an image without its fourth channel."""
    return np.ascontiguousarray(image[..., :3])


def _hash_seed(seed: int) -> int:
    """Hash a seed, because habitat-sim's generator treats all small seeds alike."""
    return int.from_bytes(hashlib.sha256(str(seed).encode()).digest()[:4], "little") >> 1


def _text(point: np.ndarray) -> str:
    return "(" + ", ".join(f"{number:.2f}" for number in point) + ")"
