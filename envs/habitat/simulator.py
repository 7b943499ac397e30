"""What a simulator offers: an agent that walks about a scene, and what it sees there.

Lengths are in metres. Positions are (x, y, z) of the agent's feet, y upwards; coordinates are
always numbers that float32 holds exactly. A heading is in degrees: 0 looks along -z (north),
and turning left adds to it.

The worker reads this file, too: it runs on Python 3.9, with numpy and nothing else.
"""

import math
from pathlib import Path
from typing import NamedTuple, Optional, Protocol

import numpy as np

ACTIONS = ("move_forward", "turn_left", "turn_right")
FORWARD, LEFT, RIGHT = range(3)
STEP_LENGTH = 0.25
TURN = 10.0  # degrees
CAMERA_HEIGHT = 0.88  # above the feet
FIELD_OF_VIEW = 79.0  # degrees, across and down
VIEW_SIZE = 64  # pixels, across and down
COMPASS = (0.0, 90.0, 180.0, 270.0)  # headings of the panorama's four views
AGENT_RADIUS = 0.18
AGENT_HEIGHT = 0.88
HIGHEST_STEP = 0.2  # what the agent walks over, as habitat-sim's navigation meshes have it

SIMULATORS = {
    "raycast": "envs.habitat.raycast.simulator",
    "habitat_sim": "envs.habitat.habitat_sim.simulator",
}
INSTALL = {
    "raycast": "; install it with: pip install 'cbet-jax[habitat]'",
    "habitat_sim": (
        "; install it into an environment of its own with: conda create -n habitat -c conda-forge"
        " -c aihabitat python=3.9 habitat-sim headless, and name that environment's python"
    ),
}

STAGE_CONFIG = ".stage_config.json"  # habitat-sim's description of a scene, beside its file

VIEW_SHAPE = (VIEW_SIZE, VIEW_SIZE, 3)
PANORAMA_SHAPE = (len(COMPASS), *VIEW_SHAPE)

Position = tuple[float, float, float]


class SimulatorError(Exception):
    """A scene, a start or a machine that no episode can be played with; the message is a line."""


class Place(NamedTuple):
    """Where the agent is."""

    position: Position
    heading: float  # degrees, 0 <= heading < 360


class Moment(NamedTuple):
    """Where the agent is and what it sees."""

    place: Place
    view: np.ndarray  # uint8[64, 64, 3]
    panorama: np.ndarray  # uint8[4, 64, 64, 3], depends on the position alone


class FloorMap(NamedTuple):
    """The scene from above: columns run along x, rows along z (north is up)."""

    corner: tuple[float, float]  # x and z of the first cell's outer corner
    cell: float  # width of a cell
    walkable: np.ndarray  # bool[rows, columns]
    picture: np.ndarray  # uint8[rows, columns, 3], what stands there


class Simulator(Protocol):
    """One agent in one scene.

    Building one raises a `SimulatorError` if it is not installed, or cannot play the scene.
    """

    name: str
    version: str
    renderer: str

    def reset(self, seed: int) -> Moment:
        """Puts the agent on the walkable floor, to a place and heading drawn from `seed`."""

    def teleport(self, place: Place) -> Moment:
        """Puts the agent to a given place.

        Raises:
            SimulatorError: the place is not on the walkable floor.
        """

    def step(self, action: int) -> Moment:
        """Plays an action; whatever stands in the way stops the agent, or it slides along it."""

    def positions(self, seed: int, count: int) -> list[Position]:
        """Returns positions drawn from the walkable floor."""

    def floor_map(self, cell: float) -> FloorMap:
        """Draws the scene from above."""

    def close(self) -> None:
        """Frees what the simulator holds."""


def turned(heading: float, action: int) -> float:
    """Returns the heading after an action.

    36 turns lead back to exactly the same heading if it is a whole number of degrees.
    """
    turn = {FORWARD: 0.0, LEFT: TURN, RIGHT: -TURN}[action]
    return float(np.float32(heading + turn) % np.float32(360.0))


def ahead(heading: float) -> tuple[float, float]:
    """Returns x and z of the unit vector that a heading looks along."""
    angle = math.radians(heading)
    return -math.sin(angle), -math.cos(angle)


def as_float32(position: tuple) -> Position:
    """Rounds a position to numbers that the device's arrays hold exactly."""
    x, y, z = (float(np.float32(number)) for number in position)
    return x, y, z


def find_scene(scene: str, folder: Optional[Path], candidates: tuple[str, ...]) -> Path:
    """Returns the file of a scene that is given by path, or by name within a data set.

    Args:
        scene: a path, or the name of one of the data set's folders (Replica's `apartment_0`).
        folder: where the data set lies; None: scenes are given by path.
        candidates: files below a scene's folder, the best first.

    Raises:
        SimulatorError: there is no such file.
    """
    if Path(scene).is_file():
        return Path(scene)
    for root in [Path(scene)] if folder is None else [folder / scene, Path(scene)]:
        for candidate in candidates:
            if (root / candidate).is_file():
                return root / candidate
    looked = f", nor a scene of that name in {folder}" if folder is not None else ""
    raise SimulatorError(f"there is no scene {scene!r}: no such file{looked}")
