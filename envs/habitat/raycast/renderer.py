"""Pictures of a scene by casting rays: Embree finds what each pixel sees, numpy its colour."""

from importlib.metadata import version
from typing import NamedTuple

import numpy as np
from embreex.mesh_construction import TriangleMesh
from embreex.rtcore_scene import EmbreeScene

from envs.habitat.mesh import Surface
from envs.habitat.raycast.paint import Paint
from envs.habitat.simulator import (
    CAMERA_HEIGHT,
    COMPASS,
    FIELD_OF_VIEW,
    PANORAMA_SHAPE,
    VIEW_SHAPE,
    VIEW_SIZE,
    Place,
    ahead,
)

NAME = f"embree (embreex {version('embreex')})"

_PIXELS = VIEW_SIZE * VIEW_SIZE


class Hits(NamedTuple):
    """What rays met."""

    face: np.ndarray  # int32[N], -1: nothing
    u: np.ndarray  # float32[N], weight of the face's second corner
    v: np.ndarray  # float32[N], of its third
    distance: np.ndarray  # float32[N], in lengths of the ray's direction


class Renderer:
    """Draws one scene."""

    def __init__(self, surface: Surface) -> None:
        self._scene = EmbreeScene()
        TriangleMesh(self._scene, surface.vertices, surface.faces)
        self._paint = Paint(surface)
        self._forward = _directions(0.0)
        views = 1 + len(COMPASS)
        self._origins = np.empty((views * _PIXELS, 3), np.float32)
        self._directions = np.empty((views, _PIXELS, 3), np.float32)
        for index, heading in enumerate(COMPASS):
            self._directions[1 + index] = _directions(heading)

    def look(self, place: Place, *, around: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """Returns the view ahead, and the panorama if it is asked for.

        Args:
            place: where the agent stands.
            around: draw the panorama, too.
        """
        number = 1 + len(COMPASS) if around else 1
        _turn(self._forward, place.heading, self._directions[0])
        x, y, z = place.position
        origins = self._origins[: number * _PIXELS]
        origins[:] = (x, y + CAMERA_HEIGHT, z)
        colors = self.colors(origins, self._directions[:number].reshape(-1, 3))
        view = colors[:_PIXELS].reshape(VIEW_SHAPE)
        return view, colors[_PIXELS:].reshape(PANORAMA_SHAPE) if around else None

    def colors(self, origins: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """Returns what rays (float32 [N, 3] each) see, uint8 [N, 3]."""
        hits = self.cast(origins, directions)
        return self._paint(hits.face, hits.u, hits.v)

    def cast(self, origins: np.ndarray, directions: np.ndarray) -> Hits:
        """Returns the first thing that each ray (float32 [N, 3] each) meets."""
        found = self._scene.run(origins, directions, output=True)
        return Hits(found["primID"], found["u"], found["v"], found["tfar"])


def _directions(heading: float) -> np.ndarray:
    """Returns the rays through the pixels' centres, row by row from the top left."""
    edge = np.tan(np.radians(FIELD_OF_VIEW / 2))
    centres = ((np.arange(VIEW_SIZE) + 0.5) / VIEW_SIZE * 2 - 1) * edge
    rays = np.stack(np.broadcast_arrays(centres, -centres[:, None], -1.0), axis=-1)
    north = rays.reshape(-1, 3).astype(np.float32)
    return _turn(north, heading, np.empty_like(north))


def _turn(rays: np.ndarray, heading: float, out: np.ndarray) -> np.ndarray:
    """Turns rays that look north to a heading."""
    x, z = (np.float32(part) for part in ahead(heading))
    out[:, 0] = -z * rays[:, 0] - x * rays[:, 2]
    out[:, 1] = rays[:, 1]
    out[:, 2] = x * rays[:, 0] - z * rays[:, 2]
    return out
