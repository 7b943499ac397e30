"""Read one of the package's apartments."""

import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from envs.habitat.mesh import Mesh


def read(path: Path) -> Mesh:
    """Read an apartment without trimesh, which takes seconds and rounds texture coordinates.

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
