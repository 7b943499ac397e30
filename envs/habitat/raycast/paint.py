"""Look up the colours of many points on the triangles of a scene."""

import numpy as np

from envs.habitat.mesh import Mesh

_OUTSIDE = (110, 150, 200)  # colour of rays that hit nothing
_LIGHT = np.array((0.35, 0.86, 0.37))  # direction of the light on triangles without a texture
_DARKEST = 0.7
_WHITE = 255.0


class Paint:
    """Colour tables with a row per triangle, and a last row (-1) for rays that hit nothing."""

    def __init__(self, mesh: Mesh) -> None:
        outside = np.full((1, 1, 3), _OUTSIDE, np.uint8)
        images = (np.full_like(outside, 255), outside, *mesh.textures)
        self._texels = _texels(images)
        sizes = np.array([image.shape[1::-1] for image in images])
        offsets = np.cumsum(np.append(0, sizes.prod(axis=1)[:-1]))
        texture = np.append(np.where(mesh.texture < 0, 0, mesh.texture + 2), 1)
        self._frames = np.column_stack([offsets, sizes])[texture]  # offset, width, height

        places = np.concatenate([mesh.texture_place, np.zeros((1, 3, 2))])
        self._wraps = bool((places < 0).any() or (places > 1).any())
        self._places = _affine(places * sizes[texture][:, None])
        tints = np.concatenate([mesh.colors * (_shades(mesh) / _WHITE), np.ones((1, 3, 3))])
        self._tints = None if (tints == 1).all() else _affine(tints)

    def __call__(self, face: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return colours, uint8 [N, 3].

        Args:
            face: int [N], index of a triangle, or -1 for none.
            u: float32 [N], weight of its second corner.
            v: float32 [N], weight of its third corner.
        """
        face = face.astype(np.intp)
        x, y = _at(self._places.take(face, axis=0), u, v)
        frame = self._frames.take(face, axis=0)
        width, height = frame[:, 1], frame[:, 2]
        if self._wraps:
            column, row = np.floor(x).astype(np.intp) % width, np.floor(y).astype(np.intp) % height
        else:
            column = np.minimum(x.astype(np.intp), width - 1)
            row = np.minimum(y.astype(np.intp), height - 1)
        texels = self._texels.take(frame[:, 0] + row * width + column)
        colors = texels.view(np.uint8).reshape(-1, 4)[:, :3]
        if self._tints is None:
            return np.ascontiguousarray(colors)
        tints = np.stack(_at(self._tints.take(face, axis=0), u, v), axis=-1)
        return (colors * np.maximum(tints, 0.0)).astype(np.uint8)


def _texels(images: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the pixels of all images in one row of four bytes each: a colour is one look-up."""
    pixels = np.concatenate([image.reshape(-1, 3) for image in images])
    padded = np.zeros((len(pixels), 4), np.uint8)
    padded[:, :3] = pixels
    return padded.view(np.uint32).ravel()


def _affine(corners: np.ndarray) -> np.ndarray:
    """Turn values at corners [F, 3, K] into (value, slope in u, slope in v), [F, 3K]."""
    origin = corners[:, 0]
    changes = np.stack([origin, corners[:, 1] - origin, corners[:, 2] - origin], axis=-1)
    return np.ascontiguousarray(changes.reshape(len(corners), -1), np.float32)


def _at(rows: np.ndarray, u: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    """Return the K values of affine rows [N, 3K] at (u, v)."""
    return [
        rows[:, first] + u * rows[:, first + 1] + v * rows[:, first + 2]
        for first in range(0, rows.shape[1], 3)
    ]


def _shades(mesh: Mesh) -> np.ndarray:
    """Return the brightness of each triangle, [F, 1, 1]: 1 if its texture includes the light."""
    corners = mesh.vertices[mesh.faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    light = normal @ (_LIGHT / np.linalg.norm(_LIGHT))
    shade = _DARKEST + (1 - _DARKEST) * (0.5 + 0.5 * light)
    # Colours that differ between corners come from photographs (of a scan), which include light.
    lit = (mesh.texture >= 0) | (mesh.colors != mesh.colors[:, :1]).any(axis=(1, 2))
    return np.where(lit, 1.0, shade)[:, None, None]
