"""habitat-sim 0.3, with what it takes to run it headless and reproducibly.

This file is read by the interpreter that habitat-sim is installed in: Python 3.9 or newer. One
process holds one simulator: it draws in one thread only, does not survive a fork, and a second
one would share its graphics context.
"""

import hashlib
import math
from pathlib import Path
from typing import Any, Optional

import habitat_sim
import numpy as np

from envs.habitat.habitat_sim.quick_start import quick_start
from envs.habitat.simulator import (
    ACTIONS,
    AGENT_HEIGHT,
    AGENT_RADIUS,
    CAMERA_HEIGHT,
    COMPASS,
    FIELD_OF_VIEW,
    FORWARD,
    HIGHEST_STEP,
    STAGE_CONFIG,
    STEP_LENGTH,
    TURN,
    VIEW_SIZE,
    FloorMap,
    Moment,
    Place,
    Position,
    SimulatorError,
    as_float32,
    find_scene,
    turned,
)

_CANDIDATES = (  # in the folder of a Replica scene
    f"habitat/replica_stage{STAGE_CONFIG}",
    "habitat/mesh_semantic.ply",
    "mesh.ply",
)
_FIRST_EGL_DEVICE = -1  # 0 would be CUDA's first; where there is none, habitat-sim exits
_WALKER, _COMPASS_AGENT = 0, 1
_EYE = "rgb"
_TURNS = 36
_TRIES = 100
_ISLAND_SHARE = 0.2  # of the largest island's area: roofs, islands too, are larger than floors
_PROBES = 10  # points that say how high an island lies
_SAME = 1e-3  # metres between a point and the navigation mesh's nearest
_FLOOR_GREY, _WALL_GREY = 200, 60


class HabitatSim:
    """One agent in one scene, and a second one that carries the panorama's four cameras.

    The second one stands where the first does, but never turns: drawing the first one's view
    does not draw the panorama again.
    """

    name = "habitat_sim"
    version = str(habitat_sim.__version__)
    renderer = "OpenGL through EGL"

    def __init__(self, scene: Path) -> None:
        """Opens a scene, and loads or computes its navigation mesh.

        Raises:
            SimulatorError: habitat-sim cannot read the scene, or nobody can walk in it.
        """
        settings = _navigation()
        with quick_start(scene):
            try:
                self._sim = habitat_sim.Simulator(_configuration(scene, settings))
            except Exception as error:  # AssertionError, ValueError, and others
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise SimulatorError(f"habitat-sim cannot open {scene}: {reason}") from error
        self._paths = self._sim.pathfinder
        if not self._paths.is_loaded:
            self._sim.recompute_navmesh(self._paths, settings)
        if not self._paths.is_loaded or not self._paths.num_islands:
            raise SimulatorError(f"the scene {scene} has no walkable floor")
        self._island = self._choose_island()
        self._place = Place((0.0, 0.0, 0.0), 0.0)
        self._panorama: Optional[np.ndarray] = None  # at the place's position

    def reset(self, seed: int) -> Moment:
        """Puts the agent to a place and heading drawn from `seed`."""
        heading = np.random.default_rng((seed, 1)).integers(_TURNS) * 360.0 / _TURNS
        return self._stand(Place(self.positions(seed, 1)[0], float(heading)))

    def teleport(self, place: Place) -> Moment:
        """Puts the agent to a given place.

        Raises:
            SimulatorError: the place is not on the walkable floor.
        """
        heading = float(np.float32(place.heading) % np.float32(360.0))
        return self._stand(Place(self._put(place.position), heading))

    def step(self, action: int) -> Moment:
        """Plays an action, sliding along what is in the way."""
        position, heading = self._place
        if action != FORWARD:
            return self._stand(Place(position, turned(heading, action)))
        seen = self._sim.step(ACTIONS[FORWARD])
        moved = as_float32(tuple(self._sim.get_agent(_WALKER).get_state().position))
        return self._show(Place(moved, heading), seen)

    def positions(self, seed: int, count: int) -> list[Position]:
        """Returns positions drawn from the walkable floor.

        Raises:
            SimulatorError: none can be drawn.
        """
        self._sim.seed(_spread(seed))
        return [self._draw(self._island) for _ in range(count)]

    def floor_map(self, cell: float) -> FloorMap:
        """Draws what is walkable from above."""
        low, _ = self._paths.get_bounds()
        height = self._draw(self._island)[1]
        walkable = np.array(self._paths.get_topdown_view(cell, height), bool)
        grey = np.where(walkable, _FLOOR_GREY, _WALL_GREY).astype(np.uint8)
        corner = float(low[0]), float(low[2])
        return FloorMap(corner, cell, walkable, np.repeat(grey[..., None], 3, axis=-1))

    def close(self) -> None:
        """Ends the simulator."""
        self._sim.close()

    def _stand(self, place: Place) -> Moment:
        """Puts the walker to a place, exactly, and looks from there.

        Turning goes this way, too: habitat-sim's own turns add up rounding errors.
        """
        self._sim.get_agent(_WALKER).set_state(_state(place), is_initial=True)
        return self._show(place, self._sim.get_sensor_observations(_WALKER))

    def _show(self, place: Place, seen: Any) -> Moment:
        if self._panorama is None or place.position != self._place.position:
            north = Place(place.position, 0.0)
            self._sim.get_agent(_COMPASS_AGENT).set_state(_state(north), is_initial=True)
            around = self._sim.get_sensor_observations(_COMPASS_AGENT)
            self._panorama = np.stack([_colors(around[_camera(yaw)]) for yaw in COMPASS])
        self._place = place
        return Moment(place, _colors(seen[_EYE]), self._panorama)

    def _put(self, position: Position) -> Position:
        """Returns a position on the floor, itself if it is already there."""
        given = np.array(as_float32(position), np.float32)
        nearest = np.array(self._paths.snap_point(given), np.float32)
        if not np.isfinite(nearest).all():  # nothing is near
            raise SimulatorError(f"{_text(given)} is not on the walkable floor")
        away, above = float(np.hypot(*(nearest - given)[[0, 2]])), abs(float(nearest[1] - given[1]))
        if away > AGENT_RADIUS or above > 2 * HIGHEST_STEP:
            raise SimulatorError(
                f"{_text(given)} is not on the walkable floor; near it is {_text(nearest)}"
            )
        return as_float32(tuple(given if max(away, above) <= _SAME else nearest))

    def _draw(self, island: int) -> Position:
        """Returns a random point of an island."""
        for _ in range(_TRIES):
            point = np.array(self._paths.get_random_navigable_point(island_index=island))
            if np.isfinite(point).all():
                return as_float32(tuple(point))
        raise SimulatorError("no start position can be drawn from the scene's floor")

    def _choose_island(self) -> int:
        """Returns the lowest of the large islands; a roof is one, too, and may be the largest."""
        islands = range(self._paths.num_islands)
        areas = [self._paths.island_area(island) for island in islands]
        large = [island for island in islands if areas[island] >= _ISLAND_SHARE * max(areas)]
        heights = {
            island: float(np.median([self._draw(island)[1] for _ in range(_PROBES)]))
            for island in large
        }
        return min(large, key=lambda island: heights[island])


def open_scene(scene: str, folder: Optional[Path]) -> HabitatSim:
    """Opens a scene.

    Args:
        scene: the path of a file that habitat-sim reads, or a name within `folder`.
        folder: where a data set such as Replica lies.

    Raises:
        SimulatorError: there is no such scene, or habitat-sim cannot play it.
    """
    return HabitatSim(find_scene(scene, folder, _CANDIDATES).resolve())


def _configuration(scene: Path, settings: Any) -> Any:
    backend = habitat_sim.SimulatorConfiguration()
    backend.scene_id = str(scene)
    backend.gpu_device_id = _FIRST_EGL_DEVICE
    backend.enable_physics = False
    backend.load_semantic_mesh = False
    backend.allow_sliding = True
    if hasattr(backend, "navmesh_settings"):
        backend.navmesh_settings = settings
    walker = _agent({_EYE: 0.0})
    walker.action_space = {
        ACTIONS[FORWARD]: habitat_sim.ActionSpec(
            ACTIONS[FORWARD], habitat_sim.ActuationSpec(amount=STEP_LENGTH)
        ),
        **{
            turn: habitat_sim.ActionSpec(turn, habitat_sim.ActuationSpec(amount=TURN))
            for turn in ACTIONS[FORWARD + 1 :]
        },
    }
    compass = _agent({_camera(yaw): yaw for yaw in COMPASS})
    return habitat_sim.Configuration(backend, [walker, compass])


def _agent(cameras: dict) -> Any:
    """Returns an agent with cameras that look to the given sides, degrees to the left."""
    agent = habitat_sim.AgentConfiguration()
    agent.height, agent.radius = AGENT_HEIGHT, AGENT_RADIUS
    sensors = []
    for name, yaw in cameras.items():
        camera = habitat_sim.CameraSensorSpec()
        camera.uuid = name
        camera.sensor_type = habitat_sim.SensorType.COLOR
        camera.resolution = [VIEW_SIZE, VIEW_SIZE]
        camera.hfov = FIELD_OF_VIEW
        camera.position = [0.0, CAMERA_HEIGHT, 0.0]
        camera.orientation = [0.0, math.radians(yaw), 0.0]
        sensors.append(camera)
    agent.sensor_specifications = sensors
    return agent


def _navigation() -> Any:
    settings = habitat_sim.NavMeshSettings()
    settings.set_defaults()
    settings.agent_radius, settings.agent_height = AGENT_RADIUS, AGENT_HEIGHT
    return settings


def _camera(yaw: float) -> str:
    return f"rgb_{yaw:.0f}"


def _state(place: Place) -> Any:
    half = math.radians(place.heading) / 2
    state = habitat_sim.AgentState()
    state.position = np.array(place.position, np.float32)
    state.rotation = [0.0, math.sin(half), 0.0, math.cos(half)]  # x, y, z, w
    return state


def _colors(image: np.ndarray) -> np.ndarray:
    """Returns an image without its fourth channel."""
    return np.ascontiguousarray(image[..., :3])


def _spread(seed: int) -> int:
    """Returns a seed unlike its neighbours': habitat-sim's generator takes small ones for one."""
    digest = hashlib.sha256(str(seed).encode()).digest()
    return int.from_bytes(digest[:4], "little") >> 1


def _text(point: np.ndarray) -> str:
    return "(" + ", ".join(f"{number:.2f}" for number in point) + ")"
