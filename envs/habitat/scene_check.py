"""Refuse damaged scene files before a simulator opens them: habitat-sim would crash.

The worker imports this file: it must run on Python 3.9 with numpy, and uses Pillow if it is there.
"""

import io
import json
import struct
import urllib.parse
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np

from envs.habitat.scenes import line
from envs.habitat.simulator import SimulatorError

_COMPONENTS = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_NUMBERS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
_PLY_BYTES = {
    "char": 1, "uchar": 1, "int8": 1, "uint8": 1, "short": 2, "ushort": 2, "int16": 2,
    "uint16": 2, "int": 4, "uint": 4, "int32": 4, "uint32": 4, "float": 4, "float32": 4,
    "double": 8, "float64": 8,
}  # fmt: skip
_MOST_HEADER_BYTES = 1 << 16
_JSON, _BINARY = b"JSON", b"BIN\0"


def check_scene(path: Path) -> None:
    """Check a scene's file for damage: sizes, indices, positions, and all textures.

    Raises:
        SimulatorError: the file is missing or damaged. The message is one line.
    """
    if not path.is_file():
        raise SimulatorError(f"there is no scene {path}")
    checks: dict[str, Callable[[Path], None]] = {
        ".glb": _check_glb,
        ".gltf": _check_gltf,
        ".ply": _check_ply,
    }
    check = checks.get(path.suffix.lower())
    if check is None:
        return
    try:
        check(path)
    except SimulatorError:
        raise
    except Exception as error:  # a damaged file can break any assumption
        raise SimulatorError(f"{path} cannot be read as a scene: {line(error)}") from error


def _check_glb(path: Path) -> None:
    content = path.read_bytes()
    if content[:4] != b"glTF" or len(content) < 12:
        raise ValueError("it does not begin as a .glb file")
    _, _, length = struct.unpack("<4sII", content[:12])
    if length > len(content):
        raise ValueError(f"it ends after {len(content)} of {length} bytes")
    chunks: dict[bytes, memoryview] = {}
    place = 12
    while place + 8 <= length:
        size, kind = struct.unpack("<I4s", content[place : place + 8])
        if place + 8 + size > length:
            raise ValueError("a part of it is longer than the file")
        chunks.setdefault(kind, memoryview(content)[place + 8 : place + 8 + size])
        place += 8 + size
    if _JSON not in chunks:
        raise ValueError("it has no description of its parts")
    _check_parts(json.loads(bytes(chunks[_JSON])), path, chunks.get(_BINARY))


def _check_gltf(path: Path) -> None:
    _check_parts(json.loads(path.read_bytes()), path, None)


def _check_parts(parts: dict, path: Path, binary: Optional[memoryview]) -> None:
    """Check all meshes and images that a glTF description names."""
    buffers = [_buffer(each, path, binary) for each in parts.get("buffers", [])]
    views = [_view(each, buffers) for each in parts.get("bufferViews", [])]
    accessors = parts.get("accessors", [])
    for mesh in parts.get("meshes", []):
        for part in mesh["primitives"]:
            if "KHR_draco_mesh_compression" not in part.get("extensions", {}):
                _check_triangles(part, accessors, views, parts.get("bufferViews", []))
    for index, image in enumerate(parts.get("images", [])):
        encoded = (
            views[image["bufferView"]] if "bufferView" in image else _linked(image["uri"], path)
        )
        _check_image(bytes(encoded), f"texture {index}")


def _buffer(buffer: dict, path: Path, binary: Optional[memoryview]) -> memoryview:
    content = binary if "uri" not in buffer else memoryview(_linked(buffer["uri"], path))
    if content is None or len(content) < buffer["byteLength"]:
        raise ValueError("a buffer is shorter than it says")
    return content


def _linked(uri: str, path: Path) -> bytes:
    """Return what a URI of a glTF file refers to."""
    if uri.startswith("data:"):
        import base64

        return base64.b64decode(uri.partition(",")[2])
    return (path.parent / urllib.parse.unquote(uri)).read_bytes()


def _view(view: dict, buffers: list) -> memoryview:
    start, size = view.get("byteOffset", 0), view["byteLength"]
    content = buffers[view["buffer"]][start : start + size]
    if len(content) < size:
        raise ValueError("a view is longer than its buffer")
    return content


def _check_triangles(part: dict, accessors: list, views: list, described: list) -> None:
    corners = accessors[part["attributes"]["POSITION"]]
    for index in part["attributes"].values():
        if accessors[index]["count"] != corners["count"]:
            raise ValueError("a mesh has attributes of different lengths")
        _numbers(accessors[index], views, described)
    positions = _numbers(corners, views, described)
    if not np.isfinite(positions).all():
        raise ValueError("some corners are not numbers")
    if "indices" in part:
        indices = _numbers(accessors[part["indices"]], views, described)
        if len(indices) and indices.max() >= corners["count"]:
            raise ValueError("a triangle has a corner that is not there")


def _numbers(accessor: dict, views: list, described: list) -> np.ndarray:
    """Return the numbers of an accessor [count, numbers]."""
    kind = np.dtype(_COMPONENTS[accessor["componentType"]])
    count, width = accessor["count"], _NUMBERS[accessor["type"]]
    if "bufferView" not in accessor:
        return np.zeros((count, width), kind)
    stride = described[accessor["bufferView"]].get("byteStride", width * kind.itemsize)
    shape, strides = (count, width), (stride, kind.itemsize)
    return np.ndarray(
        shape, kind, views[accessor["bufferView"]], accessor.get("byteOffset", 0), strides
    )


def _check_image(encoded: bytes, name: str) -> None:
    """Decode an image, if Pillow is there and knows its format."""
    if not encoded:
        raise ValueError(f"{name} is empty")
    if encoded[:12] == b"\xabKTX 20\xbb\r\n\x1a\n" or encoded[:2] == b"sB":  # Basis Universal
        return
    try:
        from PIL import Image
    except ImportError:
        return
    try:
        Image.open(io.BytesIO(encoded)).load()
    except Exception as error:
        raise ValueError(f"{name} is damaged: {line(error)}") from error


def _check_ply(path: Path) -> None:
    with path.open("rb") as file:
        header = file.read(_MOST_HEADER_BYTES)
    end = header.find(b"end_header")
    if not header.startswith(b"ply") or end < 0:
        raise ValueError("it does not begin as a .ply file")
    least = header.index(b"\n", end) + 1
    words = [text.split() for text in header[:end].decode("ascii", "replace").splitlines()]
    binary, count = True, 0
    vertices: Any = None
    for word in words:
        if word[:1] == ["format"]:
            binary = word[1].startswith("binary")
        elif word[:1] == ["element"]:
            count = int(word[2])
            vertices = count if word[1] == "vertex" else vertices
            faces = count if word[1] == "face" else 0
            if word[1] == "face" and not faces:
                raise ValueError("it has no triangles")
        elif word[:2] == ["property", "list"]:
            least += count * (_PLY_BYTES[word[2]] + 3 * _PLY_BYTES[word[3]])
        elif word[:1] == ["property"]:
            least += count * _PLY_BYTES[word[1]]
    if not vertices:
        raise ValueError("it has no corners")
    size = path.stat().st_size
    if binary and size < least:
        raise ValueError(f"it ends after {size} of at least {least} bytes")
