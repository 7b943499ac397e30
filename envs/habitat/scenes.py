"""Find scenes by name, and the up axis of their files, for all simulators.

The worker imports this file: it must run on Python 3.9 with only the standard library and numpy.
"""

import contextlib
import difflib
import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple, Optional

from envs.habitat.apartments import FOLDER, NAMES
from envs.habitat.simulator import SimulatorError

STAGE_CONFIG = ".stage_config.json"  # suffix of habitat-sim's description of a scene
SCENE_INSTANCE = ".scene_instance.json"  # suffix of a scene with objects placed in it
DATASET_CONFIG = ".scene_dataset_config.json"  # suffix of a data set of such scenes

Vector = tuple[float, float, float]

_ENDINGS = (".glb", ".gltf", ".ply", ".basis.glb", STAGE_CONFIG)  # preferred first
_FILES_IN_FOLDER = (  # a scene's file inside its folder, preferred first
    "habitat/mesh_semantic.ply",  # Replica
    "habitat/replica_stage" + STAGE_CONFIG,
    "mesh.ply",
    "{name}.glb",  # MP3D, HM3D
    "{name}.basis.glb",
)
_NUMBERED = re.compile(r"\d{5}-(?P<name>.+)")  # a scene's folder in HM3D
_OF_SCANS = (".house", "_semantic.ply", ".semantic.glb", ".basis.glb")  # MP3D's and HM3D's files
_MOST_NAMES = 5  # names shown in a message
_LINE = 200  # characters of an error's line


class Frame(NamedTuple):
    """Two directions in a file's coordinates."""

    up: Vector
    front: Vector


FRAMES = {"y": Frame((0, 1, 0), (0, 0, -1)), "z": Frame((0, 0, 1), (0, 1, 0))}


class SceneFile(NamedTuple):
    """The files of a scene."""

    path: Path  # triangles or description
    dataset: Optional[Path] = None  # description of the data set, if the scene has objects


class Stage(NamedTuple):
    """A file of triangles, and its frame."""

    path: Path
    frame: Frame
    said_by: str  # origin of the frame: `option`, `description` or `kind` (of the file)
    settings: dict[str, Any]  # contents of the description


def find_scene(scene: str, folder: Optional[Path] = None) -> SceneFile:
    """Find a scene by path or by name.

    Args:
        scene: a path, or the name of a scene in `folder` or of one of the package's apartments.
        folder: folder of a data set, or its `*.scene_dataset_config.json`.

    Raises:
        SimulatorError: the scene does not exist; the message suggests similar names.
    """
    if Path(scene).is_file():
        return SceneFile(Path(scene))
    if folder is None:
        if scene in NAMES:
            return SceneFile(FOLDER / f"{scene}.glb")
        if not Path(scene).is_dir():
            near = "" if "/" in scene else _near(scene, NAMES)
            raise SimulatorError(f"there is no scene {scene!r}: no such file{near}")
        scene, folder = Path(scene).resolve().name, Path(scene).resolve().parent
    if (folder / scene).is_file():
        return SceneFile(folder / scene)
    there = scenes_in(folder)
    if scene in there:
        return there[scene]
    found = _near(scene, tuple(there)) or ", which holds no scenes"
    raise SimulatorError(f"there is no scene {scene!r} in {folder}{found}")


def scenes_in(folder: Path) -> dict[str, SceneFile]:
    """Return the scenes of a data set by name.

    Args:
        folder: its folder, or its `*.scene_dataset_config.json`. Scenes are files, or folders as
            in Replica, MP3D and HM3D, in the folder itself or in that of a split (`train`).

    Raises:
        SimulatorError: the folder is missing, or its description is damaged.
    """
    configs = [folder] if folder.is_file() else sorted(folder.glob("*" + DATASET_CONFIG))
    folder = folder.parent if folder.is_file() else folder
    found: dict[str, SceneFile] = {}
    for config in configs:
        for name, path in _instances(config).items():
            found.setdefault(name, SceneFile(path, config))
    try:
        splits = sorted(path for path in folder.iterdir() if os.path.isdir(path))
    except OSError as error:
        raise SimulatorError(f"{folder} is no folder of scenes: {error.strerror}") from error
    for root in (folder, *splits):
        with contextlib.suppress(PermissionError):  # others' folders beside the scenes
            for name, path in _scenes(sorted(root.iterdir())):
                found.setdefault(name, SceneFile(path))
    return found


def _instances(config: Path) -> dict[str, Path]:
    """Return a data set's scenes with objects, by name."""
    try:
        patterns = json.loads(config.read_text()).get("scene_instances", {})
        patterns = patterns.get("paths", {}).get(".json", [])
        found = [path for pattern in patterns for path in _matching(config.parent, pattern)]
    except (ValueError, AttributeError, TypeError, OSError, NotImplementedError) as error:
        raise SimulatorError(f"{config} does not describe a data set: {line(error)}") from error
    return {
        path.name[: -len(SCENE_INSTANCE)]: path
        for path in found
        if path.name.endswith(SCENE_INSTANCE)
    }


def _matching(folder: Path, pattern: str) -> list[Path]:
    if (folder / pattern).is_dir():
        pattern = f"{pattern}/*"
    return sorted(folder.glob(pattern))


def _scenes(entries: list[Path]) -> list[tuple[str, Path]]:
    """Return names and files of the scenes in a folder, preferred first."""
    files = [
        (path.name[: -len(ending)], path)
        for ending in _ENDINGS
        for path in entries
        if path.name.endswith(ending) and os.path.isfile(path)
    ]
    for folder in entries:
        numbered = _NUMBERED.fullmatch(folder.name)
        name = numbered["name"] if numbered else folder.name
        for inside in _FILES_IN_FOLDER:
            path = folder / inside.format(name=name)
            if os.path.isfile(path):  # false without permission
                files += [(name, path), (folder.name, path)]
    return files


def _near(scene: str, there: tuple[str, ...]) -> str:
    """Return the end of a message, with the names closest to a wrong one."""
    if not there:
        return ""
    like = difflib.get_close_matches(scene, there, _MOST_NAMES, cutoff=0.5)
    names = like or sorted(there)[:_MOST_NAMES]
    more = ", ..." if not like and len(there) > _MOST_NAMES else ""
    are = "is" if len(names) == 1 else "are"
    return f"; {'near it' if like else 'there'} {are} {', '.join(names)}{more}"


def read_stage(path: Path, up: Optional[str] = None) -> Stage:
    """Return a scene's file of triangles and its frame, from the first rule that applies.

    1. The axis `up`. 2. The directions in a description (`path`, or `X.stage_config.json` beside
    `X.glb`). 3. z for PLY files and for scans of MP3D and HM3D. 4. y, glTF's standard.

    Args:
        path: the scene's triangles or description.
        up: axis that points up, `y` or `z` (None: by the other rules).

    Raises:
        SimulatorError: the description is damaged.
    """
    config = path if path.name.endswith(STAGE_CONFIG) else path.with_suffix(STAGE_CONFIG)
    settings: dict[str, Any] = {}
    if config.is_file():
        try:
            settings = dict(json.loads(config.read_text()))
            path = config.parent / settings["render_asset"] if config == path else path
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise SimulatorError(f"{config} does not describe a scene: {line(error)}") from error
    if up is None and "up" in settings:
        return Stage(path, _frame(settings["up"], settings.get("front")), "description", settings)
    if up is not None:
        return Stage(path, FRAMES[up], "option", settings)
    return Stage(path, FRAMES["z" if _is_scan(path) else "y"], "kind", settings)


def scene_name(scene: str) -> str:
    """Return the name of a scene, without folder and extension."""
    return Path(scene).name.partition(".")[0]


def _is_scan(path: Path) -> bool:
    """Return whether a file without a description is a scan, with z up."""
    return path.suffix.lower() == ".ply" or any(
        path.with_name(scene_name(path.name) + ending).is_file() for ending in _OF_SCANS
    )


def _frame(up: Any, front: Any) -> Frame:
    """Return the frame of a description; raise SimulatorError unless at right angles."""
    if front is None:
        front = next((each.front for each in FRAMES.values() if list(each.up) == up), None)
    try:
        (x0, y0, z0), (x1, y1, z1) = up, front
        right = abs(x0 * x1 + y0 * y1 + z0 * z1) <= 1e-3 and any(up) and any(front)
    except (ValueError, TypeError):
        right = False
    if not right:
        raise SimulatorError(f"up {up} and front {front} are not at right angles")
    return Frame((x0, y0, z0), (x1, y1, z1))


def line(error: Exception) -> str:
    """Return an error as one short line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:_LINE]
