"""Say to habitat-sim which way is up in a file, through a description of the scene."""

import json
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
