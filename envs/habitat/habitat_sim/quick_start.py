"""Sparing habitat-sim its light maps, which take it ten seconds to make where there is no GPU."""

import json
import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def quick_start(scene: Path) -> Iterator[None]:
    """Lets habitat-sim find a file, below the working folder, that says to do without them.

    What has no material would turn black without them, so that only scenes whose every surface
    has one start this way.
    """
    if not has_materials(scene):
        yield
        return
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "data").mkdir()
        config = {"enable_ibl": False, "ibl_envmap_filename": "none"}
        (Path(folder) / "data" / "default.pbr_config.json").write_text(json.dumps(config))
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def has_materials(scene: Path) -> bool:
    """Returns whether all parts of a `.glb` file have a material."""
    if scene.suffix.lower() != ".glb":
        return False
    with scene.open("rb") as file:
        header = file.read(20)
        if len(header) < 20 or header[:4] != b"glTF":
            return False
        (length,) = struct.unpack("<I", header[12:16])
        try:
            content = json.loads(file.read(length))
        except ValueError:
            return False
    parts = [part for mesh in content.get("meshes", []) for part in mesh.get("primitives", [])]
    return bool(parts) and all("material" in part for part in parts)
