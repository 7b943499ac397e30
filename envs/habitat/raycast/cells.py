"""Compute the walkable area on a grid of cells, as habitat-sim's navigation mesh does.

Every cell that an obstacle touches is blocked, and the agent's centre keeps away from blocked cells
by its radius, rounded up to whole cells. The border is then simplified.
"""

import math

import numpy as np
import shapely
from scipy import ndimage

CELL = 0.05  # metres
_STRAIGHT, _DIAGONAL = 2, 3  # distances between neighbouring cells; a cell is two long
_NEIGHBOURS = [  # shifts down and right, and distances
    *((shift, _STRAIGHT) for shift in ((0, 1), (0, -1), (1, 0), (-1, 0))),
    *((shift, _DIAGONAL) for shift in ((1, 1), (1, -1), (-1, 1), (-1, -1))),
]
_MIN_CELLS = 400  # 1 m2; smaller islands are ignored
_TOLERANCE = 1.3  # cells between the border of the cells and the simplified one
_NEAR = 1e-3 * CELL  # metres; corners this close to the border of cells are in one of them
_LESS = 4e-3 * CELL  # metres; wider than a line in a footprint
_MARGIN = 3e-3 * CELL  # metres left out at a cell's borders


def into_cells(triangles: np.ndarray) -> np.ndarray:
    """Move corners on the border of two cells into one of them: habitat-sim's, in float32.

    Walls are often on such borders.

    Args:
        triangles: float [F, 3, 3].
    """
    moved = triangles.copy()
    for axis in (0, 2):
        numbers = triangles[..., axis].astype(np.float32)
        low = numbers.min()
        cells = (numbers - low) * np.float32(1 / np.float32(CELL))
        nearest = np.round(cells).astype(np.float64)
        border = float(low) + CELL * nearest
        lower = (np.floor(cells) < nearest) | (nearest == np.round(cells.max()))
        inside = np.where(lower, border - _LESS, border)
        moved[..., axis] = np.where(
            np.abs(triangles[..., axis] - border) < _NEAR, inside, triangles[..., axis]
        )
    return moved


def walkable_islands(
    ground: shapely.Geometry, obstacles: shapely.Geometry, corner: np.ndarray, radius: float
) -> list[shapely.Polygon]:
    """Return the islands that an agent's centre can walk on.

    Args:
        ground: floor area in (x, z).
        obstacles: blocked area in (x, z).
        corner: float [2], least x and z of the scene, where the grid begins.
        radius: the agent's radius in metres.
    """
    high = np.asarray(shapely.total_bounds(ground)[2:])
    if not np.isfinite(high).all():
        return []
    columns, rows = (int(number) for number in np.ceil((high - corner) / CELL - 0.01))
    free = _touched(ground, corner, (rows, columns), _MARGIN)
    free &= ~_touched(obstacles, corner, (rows, columns), 0.0)
    free = _erode(free, math.ceil(round(radius / CELL, 6)))
    labels, number = ndimage.label(free)
    sizes = np.bincount(labels.ravel(), minlength=number + 1)
    return [
        _outline(labels == label, corner)
        for label in range(1, number + 1)
        if sizes[label] >= _MIN_CELLS
    ]


def _touched(
    area: shapely.Geometry, corner: np.ndarray, shape: tuple[int, int], margin: float
) -> np.ndarray:
    """Return the cells that an area touches, bool [rows, columns].

    Cells shrink by `_MARGIN` at their upper borders, and by `margin` metres at their lower ones.
    """
    shapely.prepare(area)
    x = corner[0] + CELL * np.arange(shape[1])
    z = corner[1] + CELL * np.arange(shape[0])[:, None]
    end = CELL - _MARGIN
    return shapely.intersects(area, shapely.box(x + margin, z + margin, x + end, z + end))


def _erode(free: np.ndarray, cells: int) -> np.ndarray:
    """Return the cells more than `cells` away from every blocked cell."""
    inside = np.pad(free, 1)
    neighbours = [np.roll(inside, shift, axis) for axis in (0, 1) for shift in (1, -1)]
    inner = inside & np.logical_and.reduce(neighbours)
    far = _STRAIGHT * cells
    distance = np.where(inner, far, 0)
    for _ in range(cells):
        around = [np.roll(distance, shift, (0, 1)) + length for shift, length in _NEIGHBOURS]
        distance = np.minimum(distance, np.minimum.reduce(around))
    return (inside & (distance >= far))[1:-1, 1:-1]


def _outline(cells: np.ndarray, corner: np.ndarray) -> shapely.Polygon:
    """Return the simplified border of connected cells."""
    starts = np.diff(np.pad(cells, ((0, 0), (1, 0))).astype(np.int8), axis=1) == 1
    ends = np.diff(np.pad(cells, ((0, 0), (0, 1))).astype(np.int8), axis=1) == -1
    row, first = np.nonzero(starts)
    last = np.nonzero(ends)[1]
    union = shapely.union_all(shapely.box(first, row, last + 1, row + 1))
    rings = [np.asarray(ring.coords)[:-1] for ring in (union.exterior, *union.interiors)]
    simple = [_simplify(ring) for ring in rings]
    border = simple[0] if len(simple[0]) > 2 else rings[0]  # a strip one cell wide
    holes = [corner + CELL * ring for ring in simple[1:] if len(ring) > 2]
    polygon = shapely.Polygon(corner + CELL * border, holes)
    return max(shapely.get_parts(shapely.make_valid(polygon)), key=lambda part: part.area)


def _simplify(ring: np.ndarray) -> np.ndarray:
    """Simplify a ring, int [N, 2], to within `_TOLERANCE` (Douglas-Peucker).

    It starts with the least and the greatest corner, and adds the corner furthest from each line.
    """
    order = np.lexsort(ring.T[::-1])
    left = sorted((int(order[0]), int(order[-1])))
    index = 0
    while index < len(left):
        start, end = left[index], left[(index + 1) % len(left)]
        between = (start + 1 + np.arange((end - start) % len(ring) - 1)) % len(ring)
        if tuple(ring[end]) < tuple(ring[start]):  # ties are broken alike in both directions
            between = between[::-1]
        distances = _distances(ring[between], ring[start], ring[end])
        if len(between) and distances.max() > _TOLERANCE:
            left.insert(index + 1, int(between[distances.argmax()]))
        else:
            index += 1
    return ring[left]


def _distances(points: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the distances of points [N, 2] from the line between two."""
    along = end - start
    share = np.clip((points - start) @ along / max(float(along @ along), 1.0), 0.0, 1.0)
    return np.linalg.norm(start + share[:, None] * along - points, axis=1)
