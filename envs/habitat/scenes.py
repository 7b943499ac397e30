"""Find scenes by name, and say which way is up in their files. All simulators use these rules.

The worker imports this file: it must run on Python 3.9 with only the standard library and numpy.
"""

import contextlib
import difflib
import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple, Optional

from envs.habitat.apartments import NAMES, apartment_file
from envs.habitat.simulator import SimulatorError

STAGE_CONFIG = ".stage_config.json"  # suffix of habitat-sim's description of a scene
SCENE_INSTANCE = ".scene_instance.json"  # suffix of a scene with objects placed in it
DATASET_CONFIG = ".scene_dataset_config.json"  # suffix of a data set of such scenes

Vector = tuple[float, float, float]

_ENDINGS = (".glb", ".gltf", ".ply", ".basis.glb", STAGE_CONFIG)  # of files, best first
_FILES_IN_FOLDER = (  # where the files of a scene's folder are, best first
    "habitat/mesh_semantic.ply",  # Replica
    "habitat/replica_stage" + STAGE_CONFIG,
    "mesh.ply",
    "{name}.glb",  # MP3D, HM3D
    "{name}.basis.glb",
)
_NUMBERED = re.compile(r"\d{5}-(?P<name>.+)")  # a scene's folder in HM3D
_OF_SCANS = (".house", "_semantic.ply", ".semantic.glb", ".basis.glb")  # MP3D's and HM3D's files
_MOST_NAMES = 5  # shown in a message
_LINE = 200  # characters of a reason


class Frame(NamedTuple):
    """Two directions in a file's coordinates."""

    up: Vector
    front: Vector


FRAMES = {"y": Frame((0, 1, 0), (0, 0, -1)), "z": Frame((0, 0, 1), (0, 1, 0))}


class SceneFile(NamedTuple):
    """Where a scene is."""

    path: Path  # its triangles or its description
    dataset: Optional[Path] = None  # description of its data set, if objects are placed in it


class Stage(NamedTuple):
    """The triangles of a scene, and how to turn them."""

    path: Path
    frame: Frame
    said_by: str  # what says the frame: `option`, `description` or `kind` (of the file)
    settings: dict[str, Any]  # all of that description


def find_scene(scene: str, folder: Optional[Path] = None) -> SceneFile:
    """Return where a scene is that is given by path or by name.

    Args:
        scene: a path, or the name of a scene in `folder` or of one of the package's apartments.
        folder: folder of a data set, or its `*.scene_dataset_config.json`.

    Raises:
        SimulatorError: there is no such scene. The message names the nearest ones there are.
    """
    if Path(scene).is_file():
        return SceneFile(Path(scene))
    if folder is None:
        if scene in NAMES:
            return SceneFile(apartment_file(scene))
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
        folder: its folder, or its `*.scene_dataset_config.json`. Scenes are the files in it, and
            the folders of Replica's, MP3D's and HM3D's layouts, or those in a folder of a split
            (`train`).

    Raises:
        SimulatorError: it is no folder, or its description is damaged.
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
    """Return the scenes with objects in a data set by name."""
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
    """Return names and files of the scenes among the entries of a folder, best first."""
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
            if os.path.isfile(path):  # not if it cannot be looked at
                files += [(name, path), (folder.name, path)]
    return files


def _near(scene: str, there: tuple[str, ...]) -> str:
    """Return the end of a message: the names that are most like a wrong one."""
    if not there:
        return ""
    like = difflib.get_close_matches(scene, there, _MOST_NAMES, cutoff=0.5)
    names = like or sorted(there)[:_MOST_NAMES]
    more = ", ..." if not like and len(there) > _MOST_NAMES else ""
    return f"; {'near it' if like else 'there'} {_are(names)} {', '.join(names)}{more}"


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def read_stage(path: Path, up: Optional[str] = None) -> Stage:
    """Return the file with the triangles of a scene, and which way is up in it.

    The first of these rules that applies decides: the axis `up`; the directions in a description
    (`X.stage_config.json` beside `X.glb`, or given as `path`); z in PLY files, and in the scans of
    MP3D and HM3D; y, as glTF's standard says.

    Args:
        path: of the scene.
        up: `y` or `z`, the axis that points up (None: the other rules decide).

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


def _is_scan(path: Path) -> bool:
    """Return whether z is up in a file that nothing describes."""
    name = path.name.partition(".")[0]
    return path.suffix.lower() == ".ply" or any(
        path.with_name(name + ending).is_file() for ending in _OF_SCANS
    )


def _frame(up: Any, front: Any) -> Frame:
    """Return the frame of a description.

    Raises:
        SimulatorError: the two are not directions at right angles.
    """
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
    """Return what an error says, in one short line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:_LINE]
