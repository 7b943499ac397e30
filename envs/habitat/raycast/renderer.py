"""Render a scene by casting rays: Embree finds the triangle of each pixel, numpy its colour."""

from importlib.metadata import version
from typing import NamedTuple

import numpy as np
from embreex.mesh_construction import TriangleMesh
from embreex.rtcore_scene import EmbreeScene

from envs.habitat.mesh import Mesh
from envs.habitat.raycast.paint import Paint
from envs.habitat.simulator import (
    CAMERA_HEIGHT,
    COMPASS,
    FIELD_OF_VIEW_DEGREES,
    PANORAMA_SHAPE,
    VIEW_SHAPE,
    VIEW_SIZE,
    Pose,
    forward_vector,
)

NAME = f"embree (embreex {version('embreex')})"

_PIXELS = VIEW_SIZE * VIEW_SIZE


class Hits(NamedTuple):
    """The triangles that rays hit."""

    face: np.ndarray  # int32[N], -1 for none
    u: np.ndarray  # float32[N], weight of the face's second corner
    v: np.ndarray  # float32[N], weight of its third corner
    distance: np.ndarray  # float32[N], in multiples of the ray's direction


class Renderer:
    """Renders one scene."""

    def __init__(self, mesh: Mesh) -> None:
        self._scene = EmbreeScene()
        TriangleMesh(self._scene, mesh.vertices, mesh.faces)
        self._paint = Paint(mesh)
        self._forward = _directions(0.0)
        views = 1 + len(COMPASS)
        self._origins = np.empty((views * _PIXELS, 3), np.float32)
        self._directions = np.empty((views, _PIXELS, 3), np.float32)
        for index, heading in enumerate(COMPASS):
            self._directions[1 + index] = _directions(heading)

    def render(self, pose: Pose, *, panorama: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the view, and the panorama (or None).

        Args:
            pose: of the agent.
            panorama: whether to render the panorama, too.
        """
        views = 1 + len(COMPASS) if panorama else 1
        _rotate(self._forward, pose.heading, self._directions[0])
        x, y, z = pose.position
        origins = self._origins[: views * _PIXELS]
        origins[:] = (x, y + CAMERA_HEIGHT, z)
        colors = self.colors(origins, self._directions[:views].reshape(-1, 3))
        view = colors[:_PIXELS].reshape(VIEW_SHAPE)
        return view, colors[_PIXELS:].reshape(PANORAMA_SHAPE) if panorama else None

    def colors(self, origins: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """Return the colours that rays see, uint8 [N, 3], from origins and directions [N, 3]."""
        hits = self.cast(origins, directions)
        return self._paint(hits.face, hits.u, hits.v)

    def cast(self, origins: np.ndarray, directions: np.ndarray) -> Hits:
        """Return the first triangle that each ray hits, from origins and directions [N, 3]."""
        found = self._scene.run(origins, directions, output=True)
        return Hits(found["primID"], found["u"], found["v"], found["tfar"])


def _directions(heading: float) -> np.ndarray:
    """Return the rays through the centres of the pixels, row by row from the top left."""
    edge = np.tan(np.radians(FIELD_OF_VIEW_DEGREES / 2))
    centres = ((np.arange(VIEW_SIZE) + 0.5) / VIEW_SIZE * 2 - 1) * edge
    rays = np.stack(np.broadcast_arrays(centres, -centres[:, None], -1.0), axis=-1)
    north = rays.reshape(-1, 3).astype(np.float32)
    return _rotate(north, heading, np.empty_like(north))


def _rotate(rays: np.ndarray, heading: float, out: np.ndarray) -> np.ndarray:
    """Rotate rays that look north to a heading."""
    x, z = (np.float32(part) for part in forward_vector(heading))
    out[:, 0] = -z * rays[:, 0] - x * rays[:, 2]
    out[:, 1] = rays[:, 1]
    out[:, 2] = x * rays[:, 0] - z * rays[:, 2]
    return out
