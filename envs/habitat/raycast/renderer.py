"""Render views and panoramas by ray casting: Embree finds triangles, numpy their colours."""

from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version

import numpy as np
from embreex.mesh_construction import TriangleMesh
from embreex.rtcore_scene import EmbreeScene

from envs.habitat.raycast.mesh import Mesh
from envs.habitat.raycast.paint import Paint
from envs.habitat.simulator import (
    CAMERA_HEIGHT,
    FIELD_OF_VIEW_DEGREES,
    VIEW_SHAPE,
    VIEW_SIZE,
    Pose,
    Position,
    forward_vector,
)

NAME = f"embree (embreex {version('embreex')})"

KEPT_VIEWS = 64  # cached views, more than the 36 of a full turn
_KEPT_RAYS = 64  # headings with cached rays


class Renderer:
    """Renders one scene, and caches the last views: agents turn back, and walls stop them."""

    def __init__(self, mesh: Mesh) -> None:
        self._scene = EmbreeScene()
        TriangleMesh(self._scene, mesh.vertices, mesh.faces)
        self._paint = Paint(mesh)
        self._kept: OrderedDict[Pose, np.ndarray] = OrderedDict()  # least recently used first

    def views(self, position: Position, headings: Sequence[float]) -> list[np.ndarray]:
        """Return the views from a position towards each heading, read-only."""
        poses = [Pose(position, heading) for heading in headings]
        new = list(dict.fromkeys(pose for pose in poses if pose not in self._kept))
        if new:
            self._kept.update(zip(new, self._render(new), strict=True))
        for pose in poses:
            self._kept.move_to_end(pose)
        views = [self._kept[pose] for pose in poses]
        while len(self._kept) > KEPT_VIEWS:
            self._kept.popitem(last=False)
        return views

    def _render(self, poses: Sequence[Pose]) -> list[np.ndarray]:
        """Render the views of poses at one position, uint8 [64, 64, 3] each."""
        x, y, z = poses[0].position
        directions = np.concatenate([_directions(pose.heading) for pose in poses])
        camera = np.array((x, y + CAMERA_HEIGHT, z), np.float32)
        colors = self.colors(np.broadcast_to(camera, directions.shape), directions)
        views = [view.copy() for view in colors.reshape(-1, *VIEW_SHAPE)]  # freed one by one
        for view in views:
            view.flags.writeable = False
        return views

    def colors(self, origins: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """Return the colours of rays, uint8 [N, 3], from origins and directions [N, 3]."""
        hits = self._scene.run(origins, directions, output=True)
        return self._paint(hits["primID"], hits["u"], hits["v"])


@lru_cache(maxsize=_KEPT_RAYS)
def _directions(heading: float) -> np.ndarray:
    """Return the rays through the centres of the pixels, row by row from the top left."""
    edge = np.tan(np.radians(FIELD_OF_VIEW_DEGREES / 2))
    centres = ((np.arange(VIEW_SIZE) + 0.5) / VIEW_SIZE * 2 - 1) * edge
    rays = np.stack(np.broadcast_arrays(centres, -centres[:, None], -1.0), axis=-1)
    north = rays.reshape(-1, 3).astype(np.float32)
    x, z = (np.float32(part) for part in forward_vector(heading))
    rays = np.empty_like(north)
    rays[:, 0] = -z * north[:, 0] - x * north[:, 2]
    rays[:, 1] = north[:, 1]
    rays[:, 2] = x * north[:, 0] - z * north[:, 2]
    return rays
