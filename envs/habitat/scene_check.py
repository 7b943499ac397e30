"""Refuse incomplete files, and scenes with too little walkable floor or on their side.

The worker imports this file: it must run on Python 3.9 with only the standard library and numpy.
"""

from collections.abc import Callable
from pathlib import Path

from envs.habitat.scenes import FRAMES, Frame, Stage
from envs.habitat.simulator import SimulatorError

_MIN_AREA = 1.0  # square metres
# A scene taller than wide is refused if turning it multiplies its floor by more than this factor,
# by what determined the up axis: the kind of the file, or the option `--up`.
_SIDEWAYS_RATIOS = {"kind": 1.1, "option": 2.0}


def check_file(path: Path) -> None:
    """Refuse a missing, truncated or foreign file, on which habitat-sim would crash.

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
    """Refuse a scene with less than 1 m2 of walkable floor.

    Raises:
        SimulatorError: the scene's floor is too small.
    """
    if area < _MIN_AREA:
        raise too_little_floor(scene, area)


def too_little_floor(scene: Path, area: float) -> SimulatorError:
    """Return the error for a scene with `area` m2 of walkable floor."""
    floor = f"only {area:.2f} square metres of" if area else "no"
    return SimulatorError(
        f"the scene {scene} has {floor} walkable floor; if it is on its side, say which axis of"
        " the file points up: --up y or --up z"
    )


def check_upright(
    stage: Stage, size: tuple[float, float, float], area: float, area_in: Callable[[Frame], float]
) -> None:
    """Refuse a scene on its side. An up axis from a scene description is trusted.

    Args:
        stage: the scene.
        size: width, height and depth in metres.
        area: walkable floor in m2.
        area_in: returns the walkable floor in another frame, in m2.

    Raises:
        SimulatorError: the scene is taller than wide, and has more floor with another axis up.
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
