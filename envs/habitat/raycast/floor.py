"""The floor that an agent can walk on, found in a scene's triangles.

A cylinder of the agent's size walks on the scene's lowest large level: what rises between a
step's height and the agent's own is in its way. Everything is seen from above, in (x, z).
"""

from typing import NamedTuple

import numpy as np
import shapely

from envs.habitat.raycast.outline import footprint, slab_footprint
from envs.habitat.simulator import AGENT_HEIGHT, AGENT_RADIUS, HIGHEST_STEP, SimulatorError

_BAND = 0.05  # metres: heights nearer than this are one level
_LEVEL_SHARE = 0.5  # of the largest level's area, that the lowest of the large ones must have
_LEAST_SHARE = 0.05  # of it, that anything looked at must have
_MOST_LEVELS = 8
_LEAST_UPRIGHT = 0.7  # vertical part of a floor's normal
_SEAM = 0.06  # metres: half of the gaps that a scan's floor may have
_HOLE = 0.05  # square metres
_LEAST_AREA = 0.25  # square metres, enough to turn around
_PROBES = 40  # points of an island that are looked up from
_TRIES = 100
_BATCH = 256


class Floor(NamedTuple):
    """The largest island of walkable floor."""

    height: float
    area: shapely.Polygon  # where the agent's centre may be, in (x, z)
    begins: np.ndarray  # float64[E, 2], of the borders, the floor on their left
    ways: np.ndarray  # float64[E, 2], from a border's begin to its end


class _Level(NamedTuple):
    height: float
    area: float


class _Island(NamedTuple):
    area: shapely.Polygon
    height: float


def find_floor(vertices: np.ndarray, faces: np.ndarray) -> Floor:
    """Returns where in a scene the agent can walk.

    Args:
        vertices: float [V, 3], y upwards.
        faces: int [F, 3].

    Raises:
        SimulatorError: nowhere.
    """
    triangles = vertices[faces].astype(np.float64)
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    area = np.linalg.norm(normal, axis=1) / 2
    up = normal[:, 1] > 2 * _LEAST_UPRIGHT * area
    levels = _levels(triangles[up][:, :, 1].mean(axis=1), area[up])
    islands = []
    for index, level in enumerate(levels):
        island = _largest_island(triangles, up, level.height)
        if island is not None:
            islands.append(_Island(island, level.height))
            above = max((other.area for other in levels[index + 1 :]), default=0.0)
            if island.area >= _LEVEL_SHARE * above and _covered(islands[-1], triangles):
                break  # no island above it would be chosen
    if not islands:
        raise SimulatorError("the scene has no walkable floor")
    return _as_floor(_choose(islands, triangles))


def _as_floor(island: _Island) -> Floor:
    oriented = shapely.orient_polygons(island.area)
    rings = [np.asarray(ring.coords) for ring in (oriented.exterior, *oriented.interiors)]
    begins = np.concatenate([ring[:-1] for ring in rings])
    ways = np.concatenate([np.diff(ring, axis=0) for ring in rings])
    shapely.prepare(island.area)
    return Floor(float(np.float32(island.height)), island.area, begins, ways)


def _levels(heights: np.ndarray, areas: np.ndarray) -> list[_Level]:
    """Returns the heights where much of the scene faces upwards, the lowest first."""
    if not len(heights):
        return []
    bins = ((heights - heights.min()) / _BAND).astype(int)
    by_bin = np.bincount(bins, areas)
    spread = by_bin + np.append(by_bin[1:], 0.0)  # a level may lie across the edge of two bins
    levels: list[_Level] = []
    for index in np.flatnonzero(spread >= max(_LEAST_SHARE * spread.max(), _LEAST_AREA)):
        near = np.flatnonzero((bins == index) | (bins == index + 1))
        near = near[np.argsort(heights[near])]
        half = np.searchsorted(np.cumsum(areas[near]), areas[near].sum() / 2)
        height = float(heights[near[half]])
        if not levels or height - levels[-1].height > 2 * _BAND:
            levels.append(_Level(height, float(spread[index])))
    return levels[:_MOST_LEVELS]


def _choose(islands: list[_Island], triangles: np.ndarray) -> _Island:
    """Returns the lowest of the large islands; one under a ceiling rather than a roof's top."""
    if len(islands) > 1:
        islands = [island for island in islands if _covered(island, triangles)] or islands
    enough = _LEVEL_SHARE * max(island.area.area for island in islands)
    return min(
        (island for island in islands if island.area.area >= enough),
        key=lambda island: island.height,
    )


def _covered(island: _Island, triangles: np.ndarray) -> bool:
    """Returns whether something is above most of an island."""
    points = draw(island.area, 0, _PROBES)
    above = triangles[triangles[:, :, 1].min(axis=1) > island.height + AGENT_HEIGHT][:, :, [0, 2]]
    low, high = above.min(axis=1), above.max(axis=1)
    covered = 0
    for point in points.astype(np.float64):
        corners = above[((low <= point) & (point <= high)).all(axis=1)] - point
        after = np.roll(corners, -1, axis=1)
        sides = corners[..., 0] * after[..., 1] - corners[..., 1] * after[..., 0]
        covered += bool(((sides >= 0).all(axis=1) | (sides <= 0).all(axis=1)).any())
    return covered > len(points) / 2


def _largest_island(triangles: np.ndarray, up: np.ndarray, level: float) -> shapely.Polygon | None:
    heights = triangles[:, :, 1]
    near = up & (heights.max(axis=1) < level + HIGHEST_STEP) & (heights.min(axis=1) > level - 0.1)
    floor = footprint(triangles[near]).buffer(_SEAM, quad_segs=1, join_style="mitre")
    floor = _without_slits(floor).buffer(-_SEAM - AGENT_RADIUS, quad_segs=3)
    obstacles = slab_footprint(triangles, level + HIGHEST_STEP, level + AGENT_HEIGHT)
    walkable = floor.difference(obstacles.buffer(AGENT_RADIUS, quad_segs=3))
    walkable = walkable.simplify(0.005)
    islands = [part for part in shapely.get_parts(walkable) if part.area >= _LEAST_AREA]
    return max(islands, key=lambda part: part.area, default=None)


def _without_slits(floor: shapely.Geometry) -> shapely.Geometry:
    """Fills holes too small to fall into; thin ones upset what GEOS does with the rest, too."""
    parts = [
        shapely.Polygon(part.exterior, [hole for hole in part.interiors if _area(hole) > _HOLE])
        for part in shapely.get_parts(floor)
    ]
    return shapely.union_all(parts)


def _area(ring: shapely.LinearRing) -> float:
    return float(shapely.Polygon(ring).area)


def draw(area: shapely.Polygon, seed: int, count: int) -> np.ndarray:
    """Draws points uniformly from an area: float32 [count, 2].

    Raises:
        SimulatorError: the area is too thin to hit.
    """
    generator = np.random.default_rng(seed)
    x0, z0, x1, z1 = area.bounds
    found = np.empty((0, 2), np.float32)
    for _ in range(_TRIES * (1 + count // _BATCH)):
        points = generator.uniform((x0, z0), (x1, z1), (_BATCH, 2)).astype(np.float32)
        inside = shapely.contains_xy(area, points[:, 0], points[:, 1])
        found = np.concatenate([found, points[inside]])
        if len(found) >= count:
            return found[:count]
    raise SimulatorError("no start position can be drawn from the scene's floor")
