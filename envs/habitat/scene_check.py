"""Refuse files that are not whole, and scenes with too little walkable floor or on their side.

The worker imports this file: it must run on Python 3.9 with only the standard library and numpy.
"""

from collections.abc import Callable
from pathlib import Path

from envs.habitat.scenes import FRAMES, Frame, Stage
from envs.habitat.simulator import SimulatorError

_MIN_AREA = 1.0  # square metres
# A scene that is taller than it is wide is refused if it has more floor by these factors when it is
# turned: by the first if its file's kind says which axis points up, by the second if `--up` does.
_SIDEWAYS_RATIOS = {"kind": 1.1, "option": 2.0}


def check_file(path: Path) -> None:
    """Refuse a missing file, and one that is cut off or something else: habitat-sim would crash.

    Raises:
        SimulatorError: the file is not a whole `.glb` file, or does not begin as a `.ply` file.
    """
    if not path.is_file():
        raise SimulatorError(f"there is no scene {path}")
    with path.open("rb") as file:
        start = file.read(12)
    kind, whole = path.suffix.lower(), True
    if kind == ".glb":
        length = int.from_bytes(start[8:], "little")
        whole = start[:4] == b"glTF" and 12 < length <= path.stat().st_size
    elif kind == ".ply":
        whole = start[:3] == b"ply"
    if not whole:
        raise SimulatorError(
            f"{path} cannot be read as a scene: it is not a whole {kind} file (is its download"
            " complete?)"
        )


def check_area(scene: Path, area: float) -> None:
    """Refuse a scene with too little walkable floor.

    Args:
        scene: its file.
        area: of its floor, in square metres.

    Raises:
        SimulatorError: it has less than a square metre.
    """
    if area < _MIN_AREA:
        raise too_little_floor(scene, area)


def too_little_floor(scene: Path, area: float) -> SimulatorError:
    """Return the error of a scene with so little floor, in square metres."""
    floor = f"only {area:.2f} square metres of" if area else "no"
    return SimulatorError(
        f"the scene {scene} has {floor} walkable floor; if it is on its side, say which axis of"
        " the file points up: --up y or --up z"
    )


def check_upright(
    stage: Stage,
    size: tuple[float, float, float],
    area: float,
    area_in: Callable[[Frame], float],
) -> None:
    """Refuse a scene in which the agent would stand on a wall. What a description says is believed.

    Args:
        stage: the scene.
        size: its width, height and depth, in metres.
        area: of its walkable floor, in square metres.
        area_in: finds the area of the floor that the scene has in another frame.

    Raises:
        SimulatorError: it is taller than wide, and has more floor if another axis points up.
    """
    width, height, depth = size
    if stage.said_by == "description" or height <= min(width, depth):
        return
    other = "z" if stage.frame == FRAMES["y"] else "y"
    turned = area_in(FRAMES[other])
    if turned > _SIDEWAYS_RATIOS[stage.said_by] * area:
        raise SimulatorError(
            f"the scene {stage.path} seems to be on its side, with {area:.1f} square metres of"
            f" walkable floor instead of {turned:.1f}: say which axis of the file points up, with"
            f" --up {other}"
        )
