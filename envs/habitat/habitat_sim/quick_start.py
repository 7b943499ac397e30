"""Start habitat-sim without light maps, which take ten seconds to compute without a GPU."""

import json
import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def quick_start(scene: Path) -> Iterator[None]:
    """Disable light maps through a file that habitat-sim finds below the working folder.

    Surfaces without a material would be black without light maps, so this applies only to scenes
    in which every surface has a material.
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
    """Return whether all parts of a `.glb` file have a material."""
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
