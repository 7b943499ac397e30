"""Walk on the floor of a scene, sliding along its border."""

import numpy as np
import shapely

from envs.habitat.raycast.floor import Floor
from envs.habitat.simulator import MAX_STEP_HEIGHT, Position, SimulatorError, as_float32

_WALL = 0.1  # metres; greatest distance of the floor from a wall, beyond the radius
_SLACK = 1e-3  # metres beyond a step within which it may slide


def walk(floor: Floor, position: Position, move: tuple[float, float]) -> Position:
    """Move by `move` (x, z) on the floor, sliding along its border.

    As in habitat-sim (Detour's `moveAlongSurface`), a stopped agent goes to the connected place
    nearby that is nearest to its goal.
    """
    x, z = position[0], position[2]
    step = shapely.LineString([(x, z), (x + move[0], z + move[1])])
    end = shapely.Point(x + move[0], z + move[1])
    if not floor.inner.covers(step):
        middle = shapely.Point(x + move[0] / 2, z + move[1] / 2)
        near = floor.inner.intersection(middle.buffer(step.length / 2 + _SLACK))
        if near.is_empty:
            return position
        parts = shapely.get_parts(near)
        part = parts[int(shapely.distance(parts, shapely.Point(x, z)).argmin())]
        end = shapely.Point(shapely.get_coordinates(shapely.shortest_line(part, end))[0])
    moved = as_float32((end.x, floor.height, end.y))
    return moved if shapely.contains_xy(floor.area, moved[0], moved[2]) else position


def snap(floor: Floor, position: Position) -> Position:
    """Return the nearest position on the floor.

    Raises:
        SimulatorError: the position is not near the floor.
    """
    x, y, z = as_float32(position)
    if shapely.contains_xy(floor.area, x, z) and abs(y - floor.height) <= MAX_STEP_HEIGHT:
        return x, floor.height, z
    nearest = shapely.get_coordinates(shapely.shortest_line(floor.inner, shapely.Point(x, z)))[0]
    snapped = as_float32((nearest[0], floor.height, nearest[1]))
    if (
        np.hypot(snapped[0] - x, snapped[2] - z) > floor.agent.radius + _WALL
        or abs(y - snapped[1]) > MAX_STEP_HEIGHT
    ):
        where = ", ".join(f"{number:.2f}" for number in (x, y, z))
        there = ", ".join(f"{number:.2f}" for number in snapped)
        raise SimulatorError(f"({where}) is not on the walkable floor; near it is ({there})")
    return snapped
