"""Configure habitat-sim through temporary files: a scene's up axis, and no light maps."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Union

from envs.habitat import gltf
from envs.habitat.scenes import FRAMES, STAGE_CONFIG, Frame, SceneFile, Stage

_SEMANTIC_PLY = "_semantic.ply"  # habitat-sim itself turns the z of these files up
_KEPT = (
    *("origin", "scale", "units_to_meters"),
    *("shader_type", "requires_lighting", "force_flat_shading"),
)


@contextmanager
def stage_file(scene: Union[Stage, SceneFile]) -> Iterator[SceneFile]:
    """Yield the file for habitat-sim to open: a data set's scene, or a temporary description."""
    if isinstance(scene, SceneFile):
        yield scene
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{scene.path.stem}{STAGE_CONFIG}"
        path.write_text(json.dumps(description(_linked(scene, Path(folder)))))
        yield SceneFile(path)


def _linked(stage: Stage, folder: Path) -> Stage:
    """Link a stage to a new path, under which habitat-sim applies its frame.

    habitat-sim caches triangles by path, as turned when first read, and turns only those PLY files
    whose names end in `_SEMANTIC_PLY`.
    """
    linked = folder / "linked"  # links the whole folder: the file may refer to its neighbours
    linked.symlink_to(stage.path.parent.resolve())
    path = linked / stage.path.name
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
    """Return a frame in coordinates rotated by habitat-sim, which turns z up."""
    (ux, uy, uz), (fx, fy, fz) = frame
    return Frame((ux, uz, -uy), (fx, fz, -fy))


@contextmanager
def without_light_maps(scene: Path) -> Iterator[None]:
    """Disable light maps, which take ten seconds to compute without a GPU.

    habitat-sim reads the configuration below the working folder. Scenes in which a surface has no
    material keep their light maps: that surface would be black.
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
    parts = [*gltf.parts(gltf.content(scene))]
    return bool(parts) and all("material" in part for part in parts)
