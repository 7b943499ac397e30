"""Look up the colours of points on the triangles of a scene."""

import numpy as np

from envs.habitat.raycast.mesh import Mesh

_OUTSIDE = (110, 150, 200)  # colour of rays without a hit
_LIGHT = np.array((0.35, 0.86, 0.37))  # direction of the light on triangles without a texture
_DARKEST = 0.7
_WHITE = 255.0


class Paint:
    """Colour tables with an entry per triangle, and a last one (-1) for rays without a hit.

    Each property of a triangle (its texture's offset, width, height, ...) has a table of its own.
    """

    def __init__(self, mesh: Mesh) -> None:
        outside = np.full((1, 1, 3), _OUTSIDE, np.uint8)
        images = (np.full_like(outside, 255), outside, *mesh.textures)
        self._texels = _texels(images)
        sizes = np.array([image.shape[1::-1] for image in images], np.int32)
        offsets = np.cumsum(np.append(0, sizes.prod(axis=1, dtype=np.int64)[:-1]))
        texture = np.append(np.where(mesh.texture < 0, 0, mesh.texture + 2), 1)
        self._offsets = offsets[texture]
        self._widths, self._heights = np.ascontiguousarray(sizes[texture].T)

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
        x, y = _at(self._places, face, u, v)
        width, height = _look_up(self._widths, face), _look_up(self._heights, face)
        if self._wraps:
            column, row = np.floor(x).astype(np.intp) % width, np.floor(y).astype(np.intp) % height
        else:
            column = np.minimum(x.astype(np.int32), width - 1)
            row = np.minimum(y.astype(np.int32), height - 1)
        texel = _look_up(self._offsets, face) + (row * width + column)
        texels = self._texels.take(texel).view(np.uint8).reshape(-1, 4)
        colors = np.empty((len(face), 3), np.uint8)
        for channel in range(3):  # much faster than to copy rows of three bytes
            colors[:, channel] = texels[:, channel]
        if self._tints is None:
            return colors
        tints = np.stack(_at(self._tints, face, u, v), axis=-1)
        return (colors * np.maximum(tints, 0.0)).astype(np.uint8)


def _look_up(table: np.ndarray, face: np.ndarray) -> np.ndarray:
    """Return a table's entry for each face; -1 selects the last one."""
    return table.take(face, mode="wrap")  # numpy's default mode is slower


def _texels(images: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the pixels of all images as one uint32 row: a colour is one look-up."""
    pixels = np.concatenate([image.reshape(-1, 3) for image in images])
    padded = np.zeros((len(pixels), 4), np.uint8)
    padded[:, :3] = pixels
    return padded.view(np.uint32).ravel()


def _affine(corners: np.ndarray) -> np.ndarray:
    """Turn values at corners [F, 3, K] into (value, slope in u, slope in v), [K, 3, F]."""
    origin = corners[:, 0]
    changes = np.stack([origin, corners[:, 1] - origin, corners[:, 2] - origin])
    return np.ascontiguousarray(changes.transpose(2, 0, 1), np.float32)


def _at(tables: np.ndarray, face: np.ndarray, u: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    """Return the K values of affine tables [K, 3, F] at (u, v) of faces."""
    return [
        _look_up(value, face) + u * _look_up(in_u, face) + v * _look_up(in_v, face)
        for value, in_u, in_v in tables
    ]


def _shades(mesh: Mesh) -> np.ndarray:
    """Return the brightness of each triangle, [F, 1, 1]: 1 if its texture includes the light."""
    corners = mesh.vertices[mesh.faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    light = normal @ (_LIGHT / np.linalg.norm(_LIGHT))
    shade = _DARKEST + (1 - _DARKEST) * (0.5 + 0.5 * light)
    # Colours that differ between corners are from a scan's photographs, which include light.
    lit = (mesh.texture >= 0) | (mesh.colors != mesh.colors[:, :1]).any(axis=(1, 2))
    return np.where(lit, 1.0, shade)[:, None, None]
