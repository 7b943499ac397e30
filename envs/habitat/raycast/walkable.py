"""Walking on a scene's floor: an agent is stopped by what is in its way, or slides along it."""

import numpy as np
import shapely

from envs.habitat.raycast.floor import Floor, draw
from envs.habitat.simulator import (
    AGENT_RADIUS,
    HIGHEST_STEP,
    Position,
    SimulatorError,
    as_float32,
)

_CLEARANCE = 1e-4  # metres kept from the border, more than rounding to float32 takes away
_SLIDES = 3  # borders touched in one step


def walk(floor: Floor, position: Position, way: tuple[float, float]) -> Position:
    """Moves along `way` (x, z) on the floor, sliding along whatever is in the way."""
    place = np.array([position[0], position[2]])
    left = np.array(way)
    for _ in range(_SLIDES):
        share, border = _first_border(floor, place, left)
        place = place + share * left
        if border is None:
            break
        along = border / np.linalg.norm(border)
        left = (1.0 - share) * (left @ along) * along
    moved = as_float32((place[0], floor.height, place[1]))
    return moved if shapely.contains_xy(floor.area, moved[0], moved[2]) else position


def _first_border(
    floor: Floor, place: np.ndarray, way: np.ndarray
) -> tuple[float, np.ndarray | None]:
    """Returns what share of the way is free, and the border that it ends at (None: none)."""
    # Only a border that the way leads out through, its right side, can stop it.
    outwards = way[0] * floor.ways[:, 1] - way[1] * floor.ways[:, 0]
    index = np.flatnonzero(outwards > 0)
    border, outwards, gap = floor.ways[index], outwards[index], floor.begins[index] - place
    length = np.hypot(border[:, 0], border[:, 1])
    share = (gap[:, 0] * border[:, 1] - gap[:, 1] * border[:, 0]) / outwards
    along = (gap[:, 0] * way[1] - gap[:, 1] * way[0]) / outwards
    stop = share - _CLEARANCE * length / outwards
    slack = _CLEARANCE / length
    met = (along >= -slack) & (along <= 1 + slack) & (share > -1e-9) & (stop < 1.0)
    if not met.any():
        return 1.0, None
    first = int(np.where(met, stop, np.inf).argmin())
    return max(0.0, float(stop[first])), border[first]


def sample(floor: Floor, seed: int, count: int) -> list[Position]:
    """Draws positions uniformly from the floor.

    Raises:
        SimulatorError: the floor is too thin to hit.
    """
    points = draw(floor.area, seed, count).tolist()
    return [as_float32((x, floor.height, z)) for x, z in points]


def put(floor: Floor, position: Position) -> Position:
    """Returns a position on the floor, itself if it is already there.

    Raises:
        SimulatorError: it is further than the agent's radius from the floor.
    """
    x, y, z = as_float32(position)
    if shapely.contains_xy(floor.area, x, z) and abs(y - floor.height) <= HIGHEST_STEP:
        return x, floor.height, z
    inner = floor.area.buffer(-2 * _CLEARANCE)
    nearest = shapely.get_coordinates(shapely.shortest_line(inner, shapely.Point(x, z)))[0]
    place = as_float32((nearest[0], floor.height, nearest[1]))
    if np.hypot(place[0] - x, place[2] - z) > AGENT_RADIUS or abs(y - place[1]) > HIGHEST_STEP:
        where = ", ".join(f"{number:.2f}" for number in (x, y, z))
        there = ", ".join(f"{number:.2f}" for number in place)
        raise SimulatorError(f"({where}) is not on the walkable floor; near it is ({there})")
    return place
