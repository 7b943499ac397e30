"""A scene as triangles with colours, and the reader of the package's apartments."""

import io
import json
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image


class Mesh(NamedTuple):
    """Triangles and their colours, with y up."""

    vertices: np.ndarray  # float32[V, 3]
    faces: np.ndarray  # int32[F, 3]
    texture: np.ndarray  # int32[F], index into `textures`; -1: corner colours only
    texture_place: np.ndarray  # float32[F, 3, 2], texture coordinates in 0..1 from the top left
    colors: np.ndarray  # uint8[F, 3, 3], colours of the corners; multiply the texture
    textures: tuple[np.ndarray, ...]  # uint8[height, width, 3] each


def read_apartment(path: Path) -> Mesh:
    """Read one of the package's apartments exactly (trimesh rounds texture coordinates).

    Args:
        path: a `.glb` file with one mesh (float32 positions and texture coordinates, uint16
            indices) and one texture, in this order.
    """
    content = path.read_bytes()
    (length,) = struct.unpack("<I", content[12:16])
    binary = content[28 + length :]
    parts: list[dict[str, Any]] = json.loads(content[20 : 20 + length])["bufferViews"]
    positions, places, corners, image = (
        binary[part["byteOffset"] : part["byteOffset"] + part["byteLength"]] for part in parts
    )
    faces = np.frombuffer(corners, "<u2").astype(np.int32).reshape(-1, 3)
    return Mesh(
        vertices=np.frombuffer(positions, "<f4").reshape(-1, 3),
        faces=faces,
        texture=np.zeros(len(faces), np.int32),
        texture_place=np.frombuffer(places, "<f4").reshape(-1, 2)[faces],
        colors=np.full((len(faces), 3, 3), 255, np.uint8),
        textures=(np.asarray(Image.open(io.BytesIO(image)).convert("RGB")),),
    )
