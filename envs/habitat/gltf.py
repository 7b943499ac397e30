"""What the JSON part of a `.glb` or `.gltf` file says (Khronos glTF 2.0)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_FLOAT, _UNSIGNED_SHORT = 5126, 5123  # types of numbers


def content(scene: Path) -> dict[str, Any]:
    """Return the JSON part of a scene's file, empty if it has none."""
    kind, text = scene.suffix.lower(), b""
    if kind == ".gltf":
        text = scene.read_bytes()
    elif kind == ".glb":
        with scene.open("rb") as file:
            header = file.read(20)
            if header[:4] == b"glTF":
                text = file.read(int.from_bytes(header[12:16], "little"))
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def parts(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the parts of all meshes, each with its own material and attributes."""
    for mesh in found.get("meshes", []):
        yield from mesh.get("primitives", [])


def misread(found: dict[str, Any]) -> str:
    """Say which attribute holds integers that trimesh does not normalize ('': none)."""
    for part in parts(found):
        for name, index in part.get("attributes", {}).items():
            kind = found["accessors"][index]["componentType"]
            if (name, kind) == ("COLOR_0", _UNSIGNED_SHORT):
                return f"{name} has 16-bit integers"
            if name == "TEXCOORD_0" and kind != _FLOAT:
                return f"{name} has integers"
    return ""
