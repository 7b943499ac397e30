"""Say to habitat-sim which way is up in a file, through a description of the scene."""

import json
import os
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
        if is_left_as_it_is(scene):
            link = Path(folder) / f"{scene.path.stem}{_SEMANTIC_PLY}"
            link.symlink_to(scene.path.resolve())
            scene = scene._replace(path=link)
        path.write_text(json.dumps(description(scene)))
        yield SceneFile(path)


def is_left_as_it_is(stage: Stage) -> bool:
    """Return whether habitat-sim would not turn a file, whatever its description says.

    It turns no PLY file but those whose name ends as `_SEMANTIC_PLY`.
    """
    path = stage.path
    is_plain = path.suffix.lower() == ".ply" and not path.name.endswith(_SEMANTIC_PLY)
    return is_plain and stage.frame != FRAMES["y"]


def description(stage: Stage) -> dict[str, Any]:
    """Return habitat-sim's description of a stage."""
    frame = _after_turn(stage.frame) if stage.path.name.endswith(_SEMANTIC_PLY) else stage.frame
    kept = {name: stage.settings[name] for name in _KEPT if name in stage.settings}
    path = stage.path.parent.resolve() / stage.path.name
    # habitat-sim keeps the triangles of a path as they were turned when it first read them.
    detour = "." if stage.frame == FRAMES["z"] else ""
    asset = os.path.join(path.parent, detour, path.name)
    return {**kept, "render_asset": asset, "up": frame.up, "front": frame.front}


def _after_turn(frame: Frame) -> Frame:
    """Return a frame in the coordinates after habitat-sim has turned the file's z up."""
    (ux, uy, uz), (fx, fy, fz) = frame
    return Frame((ux, uz, -uy), (fx, fz, -fy))
