"""The interface of simulators: an agent that moves about a scene, and its observations.

Lengths are in metres. Positions are (x, y, z) of the agent's feet with y up, and float32 holds
their coordinates exactly, as it does headings. These are in degrees: 0 looks along -z (north), and
turning left adds to them.

The worker imports this file: it must run on Python 3.9 with numpy as the only dependency.
"""

import math
from typing import Literal, NamedTuple, Protocol

import numpy as np

ACTIONS = ("move_forward", "turn_left", "turn_right")
FORWARD, LEFT, RIGHT = range(3)
STEP_LENGTH = 0.25
TURN_DEGREES = 10.0
CAMERA_HEIGHT = 0.88  # above the feet
FIELD_OF_VIEW_DEGREES = 79.0  # horizontal and vertical
VIEW_SIZE = 64  # pixels along each side
COMPASS = (0.0, 90.0, 180.0, 270.0)  # headings of the panorama's four views
AGENT_RADIUS = 0.1  # the published agent has habitat-lab's default size
AGENT_HEIGHT = 1.5
MAX_STEP_HEIGHT = 0.2  # walkable height difference, as in habitat-sim

# Modules with `open_scene`, which the worker imports.
SIMULATORS = {
    "raycast": "envs.habitat.raycast.simulator",
    "habitat_sim": "envs.habitat.habitat_sim.adapter",
}
INSTALL_HINTS = {
    "raycast": "; install it with: uv sync --extra habitat, or pip install 'cbet-jax[habitat]'",
    "habitat_sim": (
        "; install it into an environment of its own with: conda create -n habitat -c conda-forge"
        " -c aihabitat python=3.9 habitat-sim headless, and name that environment's python"
    ),
}

VIEW_SHAPE = (VIEW_SIZE, VIEW_SIZE, 3)
PANORAMA_SHAPE = (len(COMPASS), *VIEW_SHAPE)
BLACK = np.zeros(PANORAMA_SHAPE, np.uint8)  # stands in for panoramas that no method reads
BLACK.flags.writeable = False

Position = tuple[float, float, float]
Axis = Literal["y", "z"]  # the axis that points up in a scene's file


class SimulatorError(Exception):
    """A scene, start pose or simulator is unusable. The message is one line."""


class AgentSize(NamedTuple):
    """The agent is a cylinder that stands upright."""

    radius: float
    height: float


PUBLISHED_AGENT = AgentSize(AGENT_RADIUS, AGENT_HEIGHT)


class Pose(NamedTuple):
    """Position and heading of the agent."""

    position: Position
    heading: float  # degrees, 0 <= heading < 360


class Observation(NamedTuple):
    """The agent's pose, view and panorama."""

    pose: Pose
    view: np.ndarray  # uint8[64, 64, 3]
    panorama: np.ndarray  # uint8[4, 64, 64, 3], independent of the heading


class FloorMap(NamedTuple):
    """A scene from above: columns run along x, rows along z (north is up)."""

    corner: tuple[float, float]  # x and z of the outer corner of the first cell
    cell: float  # width of a cell
    walkable: np.ndarray  # bool[rows, columns]
    picture: np.ndarray  # uint8[rows, columns, 3]


class Simulator(Protocol):
    """One agent in one scene.

    Its module defines `open_scene(scene, folder)`, which returns it or raises `SimulatorError`.
    The function receives these arguments, too, if it has parameters of their names:

    - `agent`: an `AgentSize`.
    - `up`: axis that points up in the file, `y` or `z` (None: as the file says).
    - `panoramas`: False if panoramas are not used and may be black.
    """

    name: str
    version: str
    renderer: str

    def reset(self, seed: int) -> Observation:
        """Move the agent to a place on the walkable floor drawn from `seed`, with heading 0."""

    def teleport(self, pose: Pose) -> Observation:
        """Move the agent to a given pose.

        Raises:
            SimulatorError: the position is not on the walkable floor.
        """

    def step(self, action: int) -> Observation:
        """Take an action. The agent stops at obstacles or slides along them."""

    def floor_map(self, cell: float) -> FloorMap:
        """Return the scene from above, with cells of `cell` metres."""

    def close(self) -> None:
        """Release the simulator's resources."""


def turn(heading: float, action: int) -> float:
    """Return the heading after an action. 36 turns return exactly to a whole number of degrees."""
    degrees = {FORWARD: 0.0, LEFT: TURN_DEGREES, RIGHT: -TURN_DEGREES}[action]
    return float(np.float32(heading + degrees) % np.float32(360.0))


def forward_vector(heading: float) -> tuple[float, float]:
    """Return x and z of the unit vector in the direction of a heading."""
    angle = math.radians(heading)
    return -math.sin(angle), -math.cos(angle)


def as_float32(position: tuple) -> Position:
    """Round coordinates to float32, the precision of the device's arrays."""
    x, y, z = (float(np.float32(number)) for number in position)
    return x, y, z
