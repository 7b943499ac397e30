"""Configure habitat-sim through temporary files: a scene's up axis, and no light maps."""

import json
import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Union

from envs.habitat.scenes import FRAMES, STAGE_CONFIG, Frame, SceneFile, Stage

_SEMANTIC_PLY = "_semantic.ply"  # habitat-sim itself turns the z of these files up
_KEPT = ("origin", "units_to_meters", "shader_type", "requires_lighting", "force_flat_shading")


@contextmanager
def stage_file(scene: Union[Stage, SceneFile]) -> Iterator[SceneFile]:
    """Lend the file that habitat-sim opens: a scene of a data set, or a description of a stage."""
    if isinstance(scene, SceneFile):
        yield scene
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{scene.path.stem}{STAGE_CONFIG}"
        path.write_text(json.dumps(description(_linked(scene, Path(folder)))))
        yield SceneFile(path)


def _linked(stage: Stage, folder: Path) -> Stage:
    """Return a stage by a path that habitat-sim does not know, and that it would turn.

    It keeps the triangles of a path as they were turned when it first read them. And it turns no
    PLY file but those whose names end as `_SEMANTIC_PLY`.
    """
    there = folder / "there"  # what a file refers to is found beside it
    there.symlink_to(stage.path.parent.resolve())
    path = there / stage.path.name
    is_ply = path.suffix.lower() == ".ply" and not path.name.endswith(_SEMANTIC_PLY)
    if is_ply and stage.frame != FRAMES["y"]:
        path = folder / f"{path.stem}{_SEMANTIC_PLY}"
        path.symlink_to(stage.path.resolve())
    return stage._replace(path=path)


def description(stage: Stage) -> dict[str, Any]:
    """Return habitat-sim's description of a stage."""
    frame = _after_turn(stage.frame) if stage.path.name.endswith(_SEMANTIC_PLY) else stage.frame
    kept = {name: stage.settings[name] for name in _KEPT if name in stage.settings}
    asset = str(stage.path.absolute())
    return {**kept, "render_asset": asset, "up": frame.up, "front": frame.front}


def _after_turn(frame: Frame) -> Frame:
    """Return a frame in the coordinates after habitat-sim has turned the file's z up."""
    (ux, uy, uz), (fx, fy, fz) = frame
    return Frame((ux, uz, -uy), (fx, fz, -fy))


@contextmanager
def without_light_maps(scene: Path) -> Iterator[None]:
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
