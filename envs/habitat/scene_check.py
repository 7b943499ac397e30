"""Refuse damaged scene files before a simulator opens them: habitat-sim would crash.

Of a `.ply` file that is text only the header is checked. Of a binary one, lists of different
lengths (triangles beside squares) and what follows them are not checked, but for the file's length.

The worker imports this file: it must run on Python 3.9 with numpy, and uses Pillow if it is there.
"""

import io
import json
import struct
import urllib.parse
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

import numpy as np

from envs.habitat.scenes import line
from envs.habitat.simulator import SimulatorError

_COMPONENTS = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_NUMBERS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
_PLY_KINDS = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1", "short": "i2", "int16": "i2",
    "ushort": "u2", "uint16": "u2", "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4",
    "float": "f4", "float32": "f4", "double": "f8", "float64": "f8",
}  # fmt: skip
_PLY_ORDERS = {"binary_little_endian": "<", "binary_big_endian": ">"}
_PLY_CORNERS = ("vertex_indices", "vertex_index")  # of a face
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


class _Element(NamedTuple):
    """One kind of things in a `.ply` file."""

    name: str
    number: int
    properties: list[list[str]]  # words of each: types, and its name


def _check_ply(path: Path) -> None:
    with path.open("rb") as file:
        header = file.read(_MOST_HEADER_BYTES)
    end = header.find(b"end_header")
    if not header.startswith(b"ply") or end < 0:
        raise ValueError("it does not begin as a .ply file")
    order: Optional[str] = None
    elements: list[_Element] = []
    for text in header[:end].decode("ascii", "replace").splitlines():
        word = text.split()
        if word[:1] == ["format"]:
            order = _PLY_ORDERS.get(word[1])
        elif word[:1] == ["element"]:
            elements.append(_Element(word[1], int(word[2]), []))
        elif word[:1] == ["property"]:
            elements[-1].properties.append(word[1:])
    counts = {element.name: element.number for element in elements}
    if not counts.get("vertex"):
        raise ValueError("it has no corners")
    if counts.get("face") == 0:
        raise ValueError("it has no triangles")
    if order is not None:
        _check_binary_ply(path, header.index(b"\n", end) + 1, order, elements, counts["vertex"])


def _check_binary_ply(
    path: Path, place: int, order: str, elements: list[_Element], corners: int
) -> None:
    """Check length, positions and indices, up to lists of different lengths.

    Args:
        path: the file.
        place: where its numbers begin, in bytes.
        order: of the bytes of a number, as numpy writes it.
        elements: what the file has.
        corners: how many there are.
    """
    least = place + sum(each.number * _least_bytes(each) for each in elements)
    content = np.memmap(path, np.uint8, "r")
    if len(content) < least:
        raise ValueError(f"it ends after {len(content)} of at least {least} bytes")
    for element in elements:
        if not element.number or not element.properties:
            continue
        rest = content[place:]
        fields = _fields(rest, order, element)
        row, names = np.dtype(fields), [field[0] for field in fields]
        parts = [np.ndarray(min(element.number, len(rest) // row.itemsize), row, rest)]
        (rows,) = parts
        if len(rows) < element.number:  # the row that is cut off, filled up
            begun = rest[rows.nbytes :]
            parts.append(np.append(begun, rest[len(begun) : row.itemsize]).view(row))
        lengths = {name: row[name[1:]].shape[0] for name in names if name[0] == "#"}
        if any((part[name] != lengths[name]).any() for part in parts for name in lengths):
            return
        if len(rows) < element.number:
            what = f"{element.number} elements {element.name}"
            raise ValueError(f"it ends after {len(rows)} of {what}")
        if element.name == "vertex" and not all(np.isfinite(rows[axis]).all() for axis in "xyz"):
            raise ValueError("some corners are not numbers")
        for name in set(names) & set(_PLY_CORNERS):
            if rows[name].min() < 0 or rows[name].max() >= corners:
                raise ValueError("a triangle has a corner that is not there")
        place += rows.nbytes


def _least_bytes(element: _Element) -> int:
    """Return the bytes of the smallest of such elements: only a face's corners are three."""
    least = 0
    for *kinds, name in element.properties:
        sizes = [np.dtype(_PLY_KINDS[kind]).itemsize for kind in kinds if kind != "list"]
        least += sizes[0] + (3 * sizes[1] if name in _PLY_CORNERS else 0)
    return least


def _fields(content: np.ndarray, order: str, element: _Element) -> list[Any]:
    """Return the fields of elements whose lists are all as long as those of the first one.

    They are as `np.dtype` takes them. The length of a list is the field `#` and its name.
    """
    fields: list[Any] = []
    for *kinds, name in element.properties:
        types = [order + _PLY_KINDS[kind] for kind in kinds if kind != "list"]
        if kinds[0] != "list":
            fields.append((name, types[0]))
            continue
        (length,) = np.ndarray(1, types[0], content, np.dtype(fields).itemsize)
        fields += [("#" + name, types[0]), (name, types[1], (int(length),))]
    return fields
