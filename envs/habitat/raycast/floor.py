"""Find the walkable floor in the triangles of a scene.

The agent is a cylinder on the lowest large level. Everything between the height of a step and the
height of the agent is an obstacle. Areas are in (x, z), seen from above.
"""

from typing import NamedTuple

import numpy as np
import shapely

from envs.habitat.raycast.cells import into_cells, walkable_islands
from envs.habitat.raycast.footprint import footprint, slab_footprint
from envs.habitat.simulator import MAX_STEP_HEIGHT, PUBLISHED_AGENT, AgentSize, SimulatorError

_BAND = 0.05  # metres; heights closer than this are one level
_LARGE_SHARE = 0.5  # share of the largest level's area that makes a level large
_MIN_SHARE = 0.05  # levels with less of the largest level's area are ignored
_MAX_LEVELS = 8
_MIN_UPRIGHT = 0.7  # vertical component of a floor's normal
_SEAM = 0.06  # metres; half the width of the gaps closed in a scan's floor
_MIN_HOLE = 0.05  # square metres; smaller holes are filled
_MIN_AREA = 0.25  # square metres; smaller levels are ignored
_MARGIN = 1e-4  # metres
_PROBES = 40  # points of an island tested for a ceiling
_MAX_TRIES = 100
_BATCH = 256  # points sampled per try


class Floor(NamedTuple):
    """The island that the agent walks on: the lowest large one."""

    height: float
    area: shapely.Polygon  # allowed positions of the agent's centre
    inner: shapely.Polygon  # `area` shrunk by a margin for rounding to float32
    agent: AgentSize


class _Level(NamedTuple):
    height: float
    area: float


class _Island(NamedTuple):
    area: shapely.Polygon
    height: float


def find_floor(
    vertices: np.ndarray, faces: np.ndarray, agent: AgentSize = PUBLISHED_AGENT
) -> Floor:
    """Return the floor of a scene.

    Args:
        vertices: float [V, 3], with y up.
        faces: int [F, 3].
        agent: size of the agent.

    Raises:
        SimulatorError: the scene has no walkable floor.
    """
    triangles = vertices[faces].astype(np.float64)
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    area = np.linalg.norm(normal, axis=1) / 2
    up = normal[:, 1] > 2 * _MIN_UPRIGHT * area
    levels = _levels(triangles[up][:, :, 1].mean(axis=1), area[up])
    islands = []
    for index, level in enumerate(levels):
        island = _largest_island(triangles, up, level.height, agent)
        if island is not None:
            islands.append(_Island(island, level.height))
            above = max((other.area for other in levels[index + 1 :]), default=0.0)
            if island.area >= _LARGE_SHARE * above and _covered(islands[-1], triangles, agent):
                break  # no higher island would be chosen
    if not islands:
        raise SimulatorError("the scene has no walkable floor")
    return _as_floor(_choose(islands, triangles, agent), agent)


def _as_floor(island: _Island, agent: AgentSize) -> Floor:
    inner = max(
        shapely.get_parts(island.area.buffer(-_MARGIN, join_style="mitre")),
        key=lambda part: part.area,
    )
    shapely.prepare([island.area, inner])
    return Floor(float(np.float32(island.height)), island.area, inner, agent)


def _levels(heights: np.ndarray, areas: np.ndarray) -> list[_Level]:
    """Return the heights of large upward-facing areas, lowest first."""
    if not len(heights):
        return []
    bins = ((heights - heights.min()) / _BAND).astype(int)
    by_bin = np.bincount(bins, areas)
    by_band = by_bin + np.append(by_bin[1:], 0.0)  # two bins, because a level may span their edge
    levels: list[_Level] = []
    for index in np.flatnonzero(by_band >= max(_MIN_SHARE * by_band.max(), _MIN_AREA)):
        near = np.flatnonzero((bins == index) | (bins == index + 1))
        near = near[np.argsort(heights[near])]
        half = np.searchsorted(np.cumsum(areas[near]), areas[near].sum() / 2)
        height = float(heights[near[half]])
        if not levels or height - levels[-1].height > 2 * _BAND:
            levels.append(_Level(height, float(by_band[index])))
    return levels[:_MAX_LEVELS]


def _choose(islands: list[_Island], triangles: np.ndarray, agent: AgentSize) -> _Island:
    """Return the lowest large island, preferably one below a ceiling (not a roof)."""
    if len(islands) > 1:
        islands = [each for each in islands if _covered(each, triangles, agent)] or islands
    large = _LARGE_SHARE * max(island.area.area for island in islands)
    return min(
        (island for island in islands if island.area.area >= large),
        key=lambda island: island.height,
    )


def _covered(island: _Island, triangles: np.ndarray, agent: AgentSize) -> bool:
    """Return whether something is above most of an island."""
    points = sample_points(island.area, 0, _PROBES)
    above = triangles[triangles[:, :, 1].min(axis=1) > island.height + agent.height][:, :, [0, 2]]
    low, high = above.min(axis=1), above.max(axis=1)
    covered = 0
    for point in points.astype(np.float64):
        corners = above[((low <= point) & (point <= high)).all(axis=1)] - point
        after = np.roll(corners, -1, axis=1)
        sides = corners[..., 0] * after[..., 1] - corners[..., 1] * after[..., 0]
        covered += bool(((sides >= 0).all(axis=1) | (sides <= 0).all(axis=1)).any())
    return covered > len(points) / 2


def _largest_island(
    triangles: np.ndarray, up: np.ndarray, level: float, agent: AgentSize
) -> shapely.Polygon | None:
    heights = triangles[:, :, 1]
    near = (
        up & (heights.max(axis=1) < level + MAX_STEP_HEIGHT) & (heights.min(axis=1) > level - 0.1)
    )
    triangles = into_cells(triangles)
    ground = footprint(triangles[near]).buffer(_SEAM, quad_segs=1, join_style="mitre")
    ground = _without_small_holes(ground)
    obstacles = slab_footprint(triangles, level + MAX_STEP_HEIGHT, level + agent.height)
    ground = ground.buffer(-_SEAM, quad_segs=1, join_style="mitre")
    corner = triangles[:, :, [0, 2]].min(axis=(0, 1))
    islands = walkable_islands(ground, obstacles, corner, agent.radius)
    return max(islands, key=lambda part: part.area, default=None)


def _without_small_holes(floor: shapely.Geometry) -> shapely.Geometry:
    """Fill small holes; thin ones also disturb GEOS."""
    parts = []
    for part in shapely.get_parts(floor):
        large = [hole for hole in part.interiors if shapely.Polygon(hole).area > _MIN_HOLE]
        parts.append(shapely.Polygon(part.exterior, large))
    return shapely.union_all(parts)


def sample_points(area: shapely.Polygon, seed: int, count: int) -> np.ndarray:
    """Sample points uniformly from an area: float32 [count, 2].

    Raises:
        SimulatorError: the area is too thin to sample from.
    """
    generator = np.random.default_rng(seed)
    x0, z0, x1, z1 = area.bounds
    found = np.empty((0, 2), np.float32)
    for _ in range(_MAX_TRIES * (1 + count // _BATCH)):
        points = generator.uniform((x0, z0), (x1, z1), (_BATCH, 2)).astype(np.float32)
        inside = shapely.contains_xy(area, points[:, 0], points[:, 1])
        found = np.concatenate([found, points[inside]])
        if len(found) >= count:
            return found[:count]
    raise SimulatorError("found no start position on the scene's floor")
