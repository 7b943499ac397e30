"""Triangles and the colour of every point on them: what a scene is made of."""

from typing import NamedTuple

import numpy as np


class Surface(NamedTuple):
    """Triangles and their colours, y upwards."""

    vertices: np.ndarray  # float32[V, 3]
    faces: np.ndarray  # int32[F, 3]
    texture: np.ndarray  # int32[F], index of a triangle's texture; -1: colours of its corners
    texture_place: np.ndarray  # float32[F, 3, 2], of its corners in that, in 0..1 from top left
    colors: np.ndarray  # uint8[F, 3, 3], of its corners; multiplied into the texture's
    textures: tuple[np.ndarray, ...]  # uint8[height, width, 3] each
