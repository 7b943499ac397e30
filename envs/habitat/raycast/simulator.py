"""The embedded simulator: it casts rays at the triangles of a scene and walks on its floor.

It needs trimesh, embreex and shapely (the extra `habitat`), but neither OpenGL nor a display.
"""

from importlib.metadata import version
from pathlib import Path

import numpy as np
import shapely

from envs.habitat.apartments import NAMES, make_apartment
from envs.habitat.mesh import Mesh
from envs.habitat.raycast.floor import find_floor
from envs.habitat.raycast.renderer import NAME, Renderer
from envs.habitat.raycast.walkable import sample_positions, snap, walk
from envs.habitat.simulator import (
    FORWARD,
    PUBLISHED_AGENT,
    STEP_LENGTH,
    AgentSize,
    FloorMap,
    Observation,
    Pose,
    Position,
    find_scene,
    forward_vector,
    turn,
)

_CANDIDATES = ("mesh.ply", "habitat/mesh_semantic.ply")  # in the folder of a Replica scene
_NUM_HEADINGS = 36
_CUT_HEIGHT = 1.7  # metres above the floor at which the map cuts the scene
_MARGIN = 0.5  # metres around the floor on the map


class Raycast:
    """One agent in one scene."""

    name = "raycast"
    version = f"embreex {version('embreex')}"
    renderer = NAME

    def __init__(self, mesh: Mesh, agent: AgentSize = PUBLISHED_AGENT) -> None:
        """Find the floor of a scene, and prepare to render it.

        Raises:
            SimulatorError: the scene has no walkable floor.
        """
        self._floor = find_floor(mesh.vertices, mesh.faces, agent)
        self._renderer = Renderer(mesh)
        self._pose = Pose((0.0, 0.0, 0.0), 0.0)
        self._panorama: np.ndarray | None = None  # at the pose's position

    def reset(self, seed: int) -> Observation:
        """Move the agent to a random pose on the walkable floor, drawn from `seed`."""
        heading = np.random.default_rng((seed, 1)).integers(_NUM_HEADINGS) * 360.0 / _NUM_HEADINGS
        return self._observe_from(Pose(sample_positions(self._floor, seed, 1)[0], float(heading)))

    def teleport(self, pose: Pose) -> Observation:
        """Move the agent to a given pose.

        Raises:
            SimulatorError: the position is not on the walkable floor.
        """
        heading = float(np.float32(pose.heading) % np.float32(360.0))
        return self._observe_from(Pose(snap(self._floor, pose.position), heading))

    def step(self, action: int) -> Observation:
        """Take an action. The agent slides along obstacles."""
        position, heading = self._pose
        if action == FORWARD:
            x, z = forward_vector(heading)
            position = walk(self._floor, position, (x * STEP_LENGTH, z * STEP_LENGTH))
        return self._observe_from(Pose(position, turn(heading, action)))

    def positions(self, seed: int, count: int) -> list[Position]:
        """Return random positions on the walkable floor, uniformly distributed."""
        return sample_positions(self._floor, seed, count)

    def floor_map(self, cell: float) -> FloorMap:
        """Return the scene from above, cut at the height of a person's eyes."""
        x0, z0, x1, z1 = self._floor.area.buffer(_MARGIN).bounds
        x = np.arange(x0 + cell / 2, x1, cell)
        z = np.arange(z0 + cell / 2, z1, cell)
        columns, rows = np.meshgrid(x, z)
        origins = np.stack(np.broadcast_arrays(columns, self._floor.height + _CUT_HEIGHT, rows), -1)
        rays = origins.reshape(-1, 3).astype(np.float32)
        down = np.tile(np.array([[0, -1, 0]], np.float32), (len(rays), 1))
        picture = self._renderer.colors(rays, down)
        walkable = shapely.contains_xy(self._floor.area, columns, rows)
        return FloorMap((float(x0), float(z0)), cell, walkable, picture.reshape(*rows.shape, 3))

    def close(self) -> None:
        """Do nothing: a simulator holds only memory."""

    def _observe_from(self, pose: Pose) -> Observation:
        moved = self._panorama is None or pose.position != self._pose.position
        view, panorama = self._renderer.render(pose, panorama=moved)
        self._pose = pose
        if panorama is not None:
            self._panorama = panorama
        assert self._panorama is not None
        return Observation(pose, view, self._panorama)


def open_scene(
    scene: str, folder: Path | None = None, agent: AgentSize = PUBLISHED_AGENT
) -> Raycast:
    """Open a scene.

    Args:
        scene: path of a `.glb`, `.gltf` or `.ply` file (or of a `.stage_config.json`), the name
            of an apartment (`envs.habitat.apartments.NAMES`), or a name within `folder`.
        folder: folder of a data set such as Replica.
        agent: size of the agent.

    Raises:
        SimulatorError: there is no such scene, it is damaged, or it has no walkable floor.
    """
    if folder is None and scene in NAMES:
        return Raycast(make_apartment(scene), agent)
    from envs.habitat.raycast.scene_file import read  # imports trimesh, which takes seconds

    return Raycast(read(find_scene(scene, folder, _CANDIDATES)), agent)
