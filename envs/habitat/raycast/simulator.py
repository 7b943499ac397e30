"""The embedded simulator: renders by ray casting, and walks on the floor of a scene.

It needs the extra `habitat` (trimesh, embreex, shapely), but neither OpenGL nor a display.
"""

from importlib.metadata import version
from pathlib import Path

import numpy as np
import shapely

from envs.habitat import apartments
from envs.habitat.raycast.floor import find_floor, sample_points
from envs.habitat.raycast.mesh import Mesh, read_apartment
from envs.habitat.raycast.renderer import NAME, Renderer
from envs.habitat.raycast.walking import snap, walk
from envs.habitat.scene_check import check_area, check_upright, too_little_floor
from envs.habitat.scenes import Frame, Stage, find_scene, read_stage
from envs.habitat.simulator import (
    BLACK,
    COMPASS,
    FORWARD,
    PUBLISHED_AGENT,
    STEP_LENGTH,
    AgentSize,
    FloorMap,
    Observation,
    Pose,
    SimulatorError,
    forward_vector,
    turn,
)

_LARGEST_AREA = 20_000.0  # square metres of a scene; a larger one's floor would fill the memory
_CUT_HEIGHT = 1.7  # metres above the floor; higher parts are not on the map
_MARGIN = 0.5  # metres around the floor on the map


class Raycast:
    """One agent in one scene."""

    name = "raycast"
    version = f"embreex {version('embreex')}"
    renderer = NAME

    def __init__(
        self, mesh: Mesh, agent: AgentSize = PUBLISHED_AGENT, *, panoramas: bool = True
    ) -> None:
        """Find the floor of a scene, and prepare to render it (`open_scene`)."""
        self.floor = find_floor(mesh.vertices, mesh.faces, agent)
        self._renderer = Renderer(mesh)
        self._panoramas = panoramas
        self._pose = Pose((0.0, 0.0, 0.0), 0.0)

    def reset(self, seed: int) -> Observation:
        """Move the agent to a place on the walkable floor drawn from `seed`, with heading 0."""
        ((x, z),) = sample_points(self.floor.area, seed, 1).tolist()
        return self._observe_from(Pose((x, self.floor.height, z), 0.0))

    def teleport(self, pose: Pose) -> Observation:
        """Move the agent to a given pose, or refuse it (`Simulator.teleport`)."""
        heading = float(np.float32(pose.heading) % np.float32(360.0))
        return self._observe_from(Pose(snap(self.floor, pose.position), heading))

    def step(self, action: int) -> Observation:
        """Take an action. The agent slides along obstacles."""
        position, heading = self._pose
        if action == FORWARD:
            x, z = forward_vector(heading)
            position = walk(self.floor, position, (x * STEP_LENGTH, z * STEP_LENGTH))
        return self._observe_from(Pose(position, turn(heading, action)))

    def floor_map(self, cell: float) -> FloorMap:
        """Return the scene from above, cut at `_CUT_HEIGHT`, with cells of `cell` metres."""
        x0, z0, x1, z1 = self.floor.area.buffer(_MARGIN).bounds
        x = np.arange(x0 + cell / 2, x1, cell)
        columns, rows = np.meshgrid(x, np.arange(z0 + cell / 2, z1, cell))
        origins = np.stack(np.broadcast_arrays(columns, self.floor.height + _CUT_HEIGHT, rows), -1)
        rays = origins.reshape(-1, 3).astype(np.float32)
        down = np.tile(np.array([[0, -1, 0]], np.float32), (len(rays), 1))
        picture = self._renderer.colors(rays, down)
        walkable = shapely.contains_xy(self.floor.area, columns, rows)
        return FloorMap((float(x0), float(z0)), cell, walkable, picture.reshape(*rows.shape, 3))

    def close(self) -> None:
        """Do nothing: a simulator holds only memory."""

    def _observe_from(self, pose: Pose) -> Observation:
        self._pose = pose
        headings = (pose.heading, *COMPASS) if self._panoramas else (pose.heading,)
        view, *around = self._renderer.views(pose.position, headings)
        return Observation(pose, view, np.stack(around) if around else BLACK)


def open_scene(
    scene: str,
    folder: Path | None = None,
    agent: AgentSize = PUBLISHED_AGENT,
    up: str | None = None,
    *,
    panoramas: bool = True,
) -> Raycast:
    """Open a scene.

    Args:
        scene: path of a `.glb`, `.gltf` or `.ply` file (or of a `.stage_config.json`), the name
            of an apartment (`envs.habitat.apartments.NAMES`), or a name within `folder`.
        folder: folder of a data set such as Replica.
        agent: size of the agent.
        up: axis that points up in the file, `y` or `z` (None: as the file says).
        panoramas: whether to render panoramas; otherwise they are black.

    Raises:
        SimulatorError: the scene is missing, damaged, on its side, or short of walkable floor.
    """
    found = find_scene(scene, folder)
    if found.path.parent == apartments.FOLDER:
        if up is not None:
            raise SimulatorError(f"{scene} is an apartment of the package: leave --up out")
        return Raycast(read_apartment(found.path), agent, panoramas=panoramas)
    from envs.habitat.raycast.scene_file import read  # imports trimesh, which takes seconds

    if found.dataset is not None:
        raise SimulatorError(
            f"{found.path} places objects in a scene, which only habitat-sim does: add"
            " --simulator habitat_sim"
        )
    stage = read_stage(found.path, up)
    return _open_stage(read(stage), stage, agent, panoramas)


def _open_stage(mesh: Mesh, stage: Stage, agent: AgentSize, panoramas: bool) -> Raycast:
    """Open the mesh of a file; raise SimulatorError if on its side or with too little floor."""
    from envs.habitat.raycast.scene_file import rotation

    def area_in(frame: Frame) -> float:
        turned = mesh.vertices @ rotation(stage.frame) @ rotation(frame).T
        try:
            return find_floor(turned, mesh.faces, agent).area.area
        except SimulatorError:
            return 0.0

    width, height, depth = np.ptp(mesh.vertices, axis=0).tolist()
    if width * max(height, depth) > _LARGEST_AREA:  # it may lie on its side
        size = f"{width:.0f} x {height:.0f} x {depth:.0f} m"
        raise SimulatorError(f"{stage.path} has {size}: are its lengths in metres?")
    try:
        opened = Raycast(mesh, agent, panoramas=panoramas)
    except SimulatorError as error:
        raise too_little_floor(stage.path, 0.0) from error
    area = opened.floor.area.area
    check_area(stage.path, area)
    check_upright(stage, (width, height, depth), area, area_in)
    return opened
