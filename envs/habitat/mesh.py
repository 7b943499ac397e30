"""A scene as triangles with colours."""

from typing import NamedTuple

import numpy as np


class Mesh(NamedTuple):
    """Triangles and their colours, with y up."""

    vertices: np.ndarray  # float32[V, 3]
    faces: np.ndarray  # int32[F, 3]
    texture: np.ndarray  # int32[F], index of a triangle's texture; -1: only corner colours
    texture_place: np.ndarray  # float32[F, 3, 2], texture coordinates in 0..1 from the top left
    colors: np.ndarray  # uint8[F, 3, 3], of a triangle's corners; multiplied into its texture
    textures: tuple[np.ndarray, ...]  # uint8[height, width, 3] each
