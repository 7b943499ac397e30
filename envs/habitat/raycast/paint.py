"""The colours of points on a scene's triangles, looked up for many points at once."""

import numpy as np

from envs.habitat.mesh import Surface

_OUTSIDE = (110, 150, 200)  # where a ray meets nothing
_LIGHT = np.array((0.35, 0.86, 0.37))  # falls on what has no texture; textures bring their own
_DARKEST = 0.7
_WHITE = 255.0


class Paint:
    """Tables with a row for every triangle, and a last one for nothing at all (index -1)."""

    def __init__(self, surface: Surface) -> None:
        outside = np.full((1, 1, 3), _OUTSIDE, np.uint8)
        images = (np.full_like(outside, 255), outside, *surface.textures)
        self._texels = _texels(images)
        sizes = np.array([image.shape[1::-1] for image in images])
        offsets = np.cumsum(np.append(0, sizes.prod(axis=1)[:-1]))
        texture = np.append(np.where(surface.texture < 0, 0, surface.texture + 2), 1)
        self._frames = np.column_stack([offsets, sizes])[texture]  # offset, width, height

        places = np.concatenate([surface.texture_place, np.zeros((1, 3, 2))])
        self._wraps = bool((places < 0).any() or (places > 1).any())
        self._places = _affine(places * sizes[texture][:, None])
        tints = np.concatenate([surface.colors * (_shades(surface) / _WHITE), np.ones((1, 3, 3))])
        self._tints = None if (tints == 1).all() else _affine(tints)

    def __call__(self, face: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Returns colours, uint8 [N, 3].

        Args:
            face: int [N], index of a triangle; -1: nothing.
            u: float32 [N], weight of its second corner.
            v: float32 [N], weight of its third.
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
    """Returns all images' pixels in one row, four bytes each: one look-up gives a colour."""
    pixels = np.concatenate([image.reshape(-1, 3) for image in images])
    padded = np.zeros((len(pixels), 4), np.uint8)
    padded[:, :3] = pixels
    return padded.view(np.uint32).ravel()


def _affine(corners: np.ndarray) -> np.ndarray:
    """Turns values at corners [F, 3, K] into (value, change with u, change with v), [F, 3K]."""
    origin = corners[:, 0]
    changes = np.stack([origin, corners[:, 1] - origin, corners[:, 2] - origin], axis=-1)
    return np.ascontiguousarray(changes.reshape(len(corners), -1), np.float32)


def _at(rows: np.ndarray, u: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    """Returns the K values of affine rows [N, 3K] at (u, v)."""
    return [
        rows[:, first] + u * rows[:, first + 1] + v * rows[:, first + 2]
        for first in range(0, rows.shape[1], 3)
    ]


def _shades(surface: Surface) -> np.ndarray:
    """Returns how bright each triangle is, [F, 1, 1]: 1 where a texture brings its own light."""
    corners = surface.vertices[surface.faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    light = normal @ (_LIGHT / np.linalg.norm(_LIGHT))
    shade = _DARKEST + (1 - _DARKEST) * (0.5 + 0.5 * light)
    # Colours that differ from corner to corner are photographs' (of a scan), lit already.
    lit = (surface.texture >= 0) | (surface.colors != surface.colors[:, :1]).any(axis=(1, 2))
    return np.where(lit, 1.0, shade)[:, None, None]
