"""The embedded simulator: a scene's triangles, rays cast at them, and a floor to walk on.

It needs trimesh, embreex and shapely (the extra `habitat`), but no OpenGL and no display.
"""

from importlib.metadata import version
from pathlib import Path

import numpy as np
import shapely

from envs.habitat.apartments import NAMES, draw
from envs.habitat.mesh import Surface
from envs.habitat.raycast.floor import find_floor
from envs.habitat.raycast.renderer import NAME, Renderer
from envs.habitat.raycast.walkable import put, sample, walk
from envs.habitat.simulator import (
    FORWARD,
    STEP_LENGTH,
    FloorMap,
    Moment,
    Place,
    Position,
    ahead,
    find_scene,
    turned,
)

_CANDIDATES = ("mesh.ply", "habitat/mesh_semantic.ply")  # in the folder of a Replica scene
_TURNS = 36
_EYE_LEVEL = 1.7  # metres above the floor, where the picture of the scene from above cuts it
_MARGIN = 0.5  # metres around the floor on a map


class Raycast:
    """One agent in one scene."""

    name = "raycast"
    version = f"embreex {version('embreex')}"
    renderer = NAME

    def __init__(self, surface: Surface) -> None:
        """Finds the floor of a scene, and makes ready to draw it.

        Raises:
            SimulatorError: the scene has no walkable floor.
        """
        self._floor = find_floor(surface.vertices, surface.faces)
        self._renderer = Renderer(surface)
        self._place = Place((0.0, 0.0, 0.0), 0.0)
        self._panorama: np.ndarray | None = None  # at the place's position

    def reset(self, seed: int) -> Moment:
        """Puts the agent to a place and heading drawn from `seed`."""
        heading = np.random.default_rng((seed, 1)).integers(_TURNS) * 360.0 / _TURNS
        return self._stand(Place(sample(self._floor, seed, 1)[0], float(heading)))

    def teleport(self, place: Place) -> Moment:
        """Puts the agent to a given place.

        Raises:
            SimulatorError: the place is not on the walkable floor.
        """
        heading = float(np.float32(place.heading) % np.float32(360.0))
        return self._stand(Place(put(self._floor, place.position), heading))

    def step(self, action: int) -> Moment:
        """Plays an action, sliding along what is in the way."""
        position, heading = self._place
        if action == FORWARD:
            x, z = ahead(heading)
            position = walk(self._floor, position, (x * STEP_LENGTH, z * STEP_LENGTH))
        return self._stand(Place(position, turned(heading, action)))

    def positions(self, seed: int, count: int) -> list[Position]:
        """Returns positions drawn uniformly from the walkable floor."""
        return sample(self._floor, seed, count)

    def floor_map(self, cell: float) -> FloorMap:
        """Draws the scene from above, cut at the level of a person's eyes."""
        x0, z0, x1, z1 = self._floor.area.buffer(_MARGIN).bounds
        x = np.arange(x0 + cell / 2, x1, cell)
        z = np.arange(z0 + cell / 2, z1, cell)
        columns, rows = np.meshgrid(x, z)
        origins = np.stack(np.broadcast_arrays(columns, self._floor.height + _EYE_LEVEL, rows), -1)
        rays = origins.reshape(-1, 3).astype(np.float32)
        down = np.tile(np.array([[0, -1, 0]], np.float32), (len(rays), 1))
        picture = self._renderer.colors(rays, down)
        walkable = shapely.contains_xy(self._floor.area, columns, rows)
        return FloorMap((float(x0), float(z0)), cell, walkable, picture.reshape(*rows.shape, 3))

    def close(self) -> None:
        """Frees nothing: all of it is memory."""

    def _stand(self, place: Place) -> Moment:
        moved = self._panorama is None or place.position != self._place.position
        view, panorama = self._renderer.look(place, around=moved)
        self._place = place
        if panorama is not None:
            self._panorama = panorama
        assert self._panorama is not None
        return Moment(place, view, self._panorama)


def open_scene(scene: str, folder: Path | None = None) -> Raycast:
    """Opens a scene.

    Args:
        scene: the path of a `.glb`, `.gltf` or `.ply` file (or of a `.stage_config.json`), the
            name of an apartment (`envs.habitat.apartments.NAMES`), or a name within `folder`.
        folder: where a data set such as Replica lies.

    Raises:
        SimulatorError: there is no such scene, or it is damaged or cannot be walked on.
    """
    if folder is None and scene in NAMES:
        return Raycast(draw(scene))
    from envs.habitat.raycast.scene_file import read  # imports trimesh, which takes seconds

    return Raycast(read(find_scene(scene, folder, _CANDIDATES)))
