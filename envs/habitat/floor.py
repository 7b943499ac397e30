"""The floor that an agent can walk on, found in a scene's triangles, and walking on it.

A cylinder of the agent's size walks on the scene's lowest large level: what rises between a
step's height and the agent's own is in its way. Everything is seen from above, in (x, z).
"""

from typing import NamedTuple

import numpy as np
import shapely

from envs.habitat.simulator import (
    AGENT_HEIGHT,
    AGENT_RADIUS,
    HIGHEST_STEP,
    Position,
    SimulatorError,
    as_float32,
)

_BAND = 0.05  # metres: heights nearer than this are one level
_LEVEL_SHARE = 0.5  # of the largest level's area, that the lowest of the large ones must have
_LEAST_SHARE = 0.05  # of it, that anything looked at must have
_MOST_LEVELS = 8
_LEAST_UPRIGHT = 0.7  # vertical part of a floor's normal
_SEAM = 0.05  # metres: gaps that the floor of a scan may have
_CELL = 0.025  # metres: triangles smaller than a few of these are drawn as cells
_SMALL = 0.1  # metres
_HAIR = 1e-4  # metres
_LEAST_AREA = 0.25  # square metres, enough to turn around
_CLEARANCE = 1e-4  # metres kept from the border, more than rounding to float32 takes away
_SLIDES = 3  # borders touched in one step
_PROBES = 40  # points of an island that are looked up from
_TRIES = 100
_BATCH = 256


class Floor(NamedTuple):
    """The largest island of walkable floor."""

    height: float
    area: shapely.Polygon  # where the agent's centre may be, in (x, z)
    begins: np.ndarray  # float64[E, 2], of the borders, the floor on their left
    ways: np.ndarray  # float64[E, 2], from a border's begin to its end


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
    heights = triangles[:, :, 1].mean(axis=1)
    islands = [
        _Island(island, level)
        for level in _levels(heights[up], area[up])
        for island in [_largest_island(triangles, up, level)]
        if island is not None
    ]
    if not islands:
        raise SimulatorError("the scene has no walkable floor")
    island, level = _choose(islands, triangles)
    begins, ways = _borders(island)
    shapely.prepare(island)
    return Floor(float(np.float32(level)), island, begins, ways)


def _levels(heights: np.ndarray, areas: np.ndarray) -> list[float]:
    """Returns the heights where much of the scene faces upwards, the lowest first."""
    if not len(heights):
        return []
    lowest = heights.min()
    bins = ((heights - lowest) / _BAND).astype(int)
    by_bin = np.bincount(bins, areas)
    spread = by_bin + np.append(by_bin[1:], 0.0)  # a level may lie across the edge of two bins
    levels: list[float] = []
    for index in np.flatnonzero(spread >= max(_LEAST_SHARE * spread.max(), _LEAST_AREA)):
        near = (bins == index) | (bins == index + 1)
        level = float(np.average(heights[near], weights=areas[near] + 1e-12))
        if not levels or level - levels[-1] > 2 * _BAND:
            levels.append(level)
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
    begins, ways = _borders(island.area)
    floor = Floor(island.height, island.area, begins, ways)
    points = np.array(sample(floor, 0, _PROBES))[:, [0, 2]]
    above = triangles[triangles[:, :, 1].min(axis=1) > island.height + AGENT_HEIGHT][:, :, [0, 2]]
    low, high = above.min(axis=1), above.max(axis=1)
    covered = 0
    for point in points:
        corners = above[((low <= point) & (point <= high)).all(axis=1)] - point
        after = np.roll(corners, -1, axis=1)
        sides = corners[..., 0] * after[..., 1] - corners[..., 1] * after[..., 0]
        covered += bool(((sides >= 0).all(axis=1) | (sides <= 0).all(axis=1)).any())
    return covered > _PROBES / 2


def _largest_island(triangles: np.ndarray, up: np.ndarray, level: float) -> shapely.Polygon | None:
    heights = triangles[:, :, 1]
    near = up & (heights.max(axis=1) < level + HIGHEST_STEP) & (heights.min(axis=1) > level - 0.1)
    floor = _footprint(triangles[near]).buffer(_SEAM, quad_segs=1, join_style="mitre")
    floor = floor.buffer(-_SEAM - AGENT_RADIUS, join_style="mitre")
    slab = _between(triangles, level + HIGHEST_STEP, level + AGENT_HEIGHT)
    walkable = floor.difference(_footprint(slab).buffer(AGENT_RADIUS, quad_segs=3))
    walkable = walkable.simplify(0.005)
    islands = [part for part in shapely.get_parts(walkable) if part.area >= _LEAST_AREA]
    return max(islands, key=lambda part: part.area, default=None)


def _between(triangles: np.ndarray, low: float, high: float) -> np.ndarray:
    """Cuts triangles [F, 3, 3] to what lies between two heights; returns triangles.

    The polygon that is left of a triangle has up to five corners; its hull from above is all
    that is asked for, so that it is returned as up to three triangles.
    """
    bottom, top = triangles[:, :, 1].min(axis=1), triangles[:, :, 1].max(axis=1)
    touching = triangles[(bottom < high) & (top > low)]
    inside = (touching[:, :, 1] >= low).all(axis=1) & (touching[:, :, 1] <= high).all(axis=1)
    cut = [_clip(_clip(corners, low, 1.0), -high, -1.0) for corners in touching[~inside]]
    fans = [
        np.stack([polygon[0], polygon[index], polygon[index + 1]])
        for polygon in cut
        for index in range(1, len(polygon) - 1)
    ]
    return np.concatenate([touching[inside], np.array(fans).reshape(-1, 3, 3)])


def _clip(polygon: np.ndarray, least: float, sign: float) -> np.ndarray:
    """Returns what of a polygon [K, 3] has `sign * y >= least`."""
    kept = []
    for begin, end in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        before, after = sign * begin[1] - least, sign * end[1] - least
        if before >= 0:
            kept.append(begin)
        if before * after < 0:
            kept.append(begin + (end - begin) * (before / (before - after)))
    return np.array(kept).reshape(-1, 3)


def _footprint(triangles: np.ndarray) -> shapely.Geometry:
    """Returns what triangles [F, 3, 3] cover, seen from above.

    Vertical ones cover lines. The many small ones of a scan are drawn as cells first.
    """
    corners = triangles[:, :, [0, 2]]
    size = np.ptp(corners, axis=1).max(axis=1, initial=0.0)
    large, small = corners[size >= _SMALL], corners[size < _SMALL]
    rings = np.concatenate([large, large[:, :1]], axis=1)
    lines = shapely.linestrings(rings) if len(rings) else np.array([])
    edges = large[:, 1] - large[:, 0], large[:, 2] - large[:, 0]
    flat = np.abs(edges[0][:, 0] * edges[1][:, 1] - edges[0][:, 1] * edges[1][:, 0]) > 1e-8
    polygons = shapely.polygons(rings[flat]) if flat.any() else np.array([])
    # A line has no area: it is given a hair's width, so that it counts in unions.
    hairs = shapely.buffer(lines[~flat], _HAIR, quad_segs=1) if (~flat).any() else np.array([])
    return shapely.union_all(np.concatenate([polygons, hairs, _cells(small)]))


def _cells(corners: np.ndarray) -> np.ndarray:
    """Returns boxes that cover small triangles [F, 3, 2]: runs of cells along x."""
    if not len(corners):
        return np.array([])
    weights = np.array([(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.5, 0.5, 0), (0, 0.5, 0.5),
                        (0.5, 0, 0.5), (1 / 3, 1 / 3, 1 / 3)])  # fmt: skip
    points = np.einsum("wc,fcd->fwd", weights, corners).reshape(-1, 2)
    cells = np.unique(np.floor(points / _CELL).astype(np.int64)[:, ::-1], axis=0)
    row, column = cells[:, 0], cells[:, 1]
    follows = (np.diff(row) == 0) & (np.diff(column) == 1)
    starts = np.flatnonzero(np.append(True, ~follows))
    ends = np.append(starts[1:], len(cells)) - 1
    z = row[starts] * _CELL
    return shapely.box(column[starts] * _CELL, z, (column[ends] + 1) * _CELL, z + _CELL)


def _borders(area: shapely.Polygon) -> tuple[np.ndarray, np.ndarray]:
    """Returns where the area's borders begin and which way they run, the area on their left."""
    oriented = shapely.orient_polygons(area)
    rings = [np.asarray(ring.coords) for ring in (oriented.exterior, *oriented.interiors)]
    begins = np.concatenate([ring[:-1] for ring in rings])
    return begins, np.concatenate([np.diff(ring, axis=0) for ring in rings])


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


def sample(floor: Floor, seed: int, count: int = 1) -> list[Position]:
    """Draws positions uniformly from the floor.

    Raises:
        SimulatorError: the floor is too thin to hit.
    """
    generator = np.random.default_rng(seed)
    x0, z0, x1, z1 = floor.area.bounds
    found: list[Position] = []
    for _ in range(_TRIES * max(1, count // _BATCH)):
        points = generator.uniform((x0, z0), (x1, z1), (_BATCH, 2)).astype(np.float32)
        inside = points[shapely.contains_xy(floor.area, points[:, 0], points[:, 1])]
        found += [as_float32((x, floor.height, z)) for x, z in inside]
        if len(found) >= count:
            return found[:count]
    raise SimulatorError("no start position can be drawn from the scene's floor")


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
