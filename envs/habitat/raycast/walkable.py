"""Walk on the floor of a scene: the border stops the agent, or the agent slides along it."""

import numpy as np
import shapely

from envs.habitat.raycast.floor import Floor, sample_points
from envs.habitat.simulator import (
    MAX_STEP_HEIGHT,
    Position,
    SimulatorError,
    as_float32,
)

_CLEARANCE = 1e-4  # metres kept from the border, more than the error of rounding to float32
_MAX_SLIDES = 3  # edges touched in one step


def walk(floor: Floor, position: Position, move: tuple[float, float]) -> Position:
    """Move by `move` (x, z) on the floor, sliding along its border."""
    here = np.array([position[0], position[2]])
    left = np.array(move)
    for _ in range(_MAX_SLIDES):
        share, edge = _first_edge(floor, here, left)
        here = here + share * left
        if edge is None:
            break
        along = edge / np.linalg.norm(edge)
        left = (1.0 - share) * (left @ along) * along
    moved = as_float32((here[0], floor.height, here[1]))
    return moved if shapely.contains_xy(floor.area, moved[0], moved[2]) else position


def _first_edge(
    floor: Floor, here: np.ndarray, move: np.ndarray
) -> tuple[float, np.ndarray | None]:
    """Return the share of a move that is free, and the edge that ends it (None if none does)."""
    # Only an edge that the move crosses outwards, to its right side, can stop the move.
    outwards = move[0] * floor.edges[:, 1] - move[1] * floor.edges[:, 0]
    index = np.flatnonzero(outwards > 0)
    edge, outwards, gap = floor.edges[index], outwards[index], floor.edge_starts[index] - here
    length = np.hypot(edge[:, 0], edge[:, 1])
    share = (gap[:, 0] * edge[:, 1] - gap[:, 1] * edge[:, 0]) / outwards
    along = (gap[:, 0] * move[1] - gap[:, 1] * move[0]) / outwards
    stop = share - _CLEARANCE * length / outwards
    slack = _CLEARANCE / length
    met = (along >= -slack) & (along <= 1 + slack) & (share > -1e-9) & (stop < 1.0)
    if not met.any():
        return 1.0, None
    first = int(np.where(met, stop, np.inf).argmin())
    return max(0.0, float(stop[first])), edge[first]


def sample_positions(floor: Floor, seed: int, count: int) -> list[Position]:
    """Sample positions uniformly from the floor.

    Raises:
        SimulatorError: the floor is too thin to sample from.
    """
    points = sample_points(floor.area, seed, count).tolist()
    return [as_float32((x, floor.height, z)) for x, z in points]


def snap(floor: Floor, position: Position) -> Position:
    """Return the nearest position on the floor: the given one if it is on the floor.

    Raises:
        SimulatorError: the position is further from the floor than the agent's radius.
    """
    x, y, z = as_float32(position)
    if shapely.contains_xy(floor.area, x, z) and abs(y - floor.height) <= MAX_STEP_HEIGHT:
        return x, floor.height, z
    inner = floor.area.buffer(-2 * _CLEARANCE)
    nearest = shapely.get_coordinates(shapely.shortest_line(inner, shapely.Point(x, z)))[0]
    snapped = as_float32((nearest[0], floor.height, nearest[1]))
    if (
        np.hypot(snapped[0] - x, snapped[2] - z) > floor.agent.radius
        or abs(y - snapped[1]) > MAX_STEP_HEIGHT
    ):
        where = ", ".join(f"{number:.2f}" for number in (x, y, z))
        there = ", ".join(f"{number:.2f}" for number in snapped)
        raise SimulatorError(f"({where}) is not on the walkable floor; near it is ({there})")
    return snapped
