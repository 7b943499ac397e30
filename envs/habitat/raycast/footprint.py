"""Compute the area that triangles cover from above, for up to millions of triangles."""

import numpy as np
import shapely

_CELL = 0.025  # metres
_SMALL = 0.1  # metres; smaller triangles are covered by cells
_LINE_WIDTH = 1e-4  # metres


def footprint(triangles: np.ndarray) -> shapely.Geometry:
    """Return the area that triangles [F, 3, 3] cover from above.

    Vertical triangles cover lines. A scan's many small triangles are approximated by cells.
    """
    corners, size = triangles[:, :, [0, 2]], _sizes(triangles)
    large, small = corners[size >= _SMALL], corners[size < _SMALL]
    rings = np.concatenate([large, large[:, :1]], axis=1)
    lines = shapely.linestrings(rings) if len(rings) else np.array([])
    edges = large[:, 1] - large[:, 0], large[:, 2] - large[:, 0]
    flat = np.abs(edges[0][:, 0] * edges[1][:, 1] - edges[0][:, 1] * edges[1][:, 0]) > 1e-8
    polygons = shapely.polygons(rings[flat]) if flat.any() else np.array([])
    # Lines get a small width, to have an area in unions.
    thin = shapely.buffer(lines[~flat], _LINE_WIDTH, quad_segs=1) if (~flat).any() else np.array([])
    return shapely.union_all(np.concatenate([polygons, thin, _cells(small)]))


def _cells(corners: np.ndarray) -> np.ndarray:
    """Return boxes that cover small triangles [F, 3, 2]: runs of cells along x."""
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


def slab_footprint(triangles: np.ndarray, low: float, high: float) -> shapely.Geometry:
    """Return the area that triangles [F, 3, 3] cover between two heights, seen from above."""
    bottom, top = triangles[:, :, 1].min(axis=1), triangles[:, :, 1].max(axis=1)
    touching = (bottom < high) & (top > low)
    # Small triangles are not cut: they extend at most 0.1 m beyond the slab.
    whole = (bottom >= low) & (top <= high) | (_sizes(triangles) < _SMALL)
    return shapely.union(
        footprint(triangles[touching & whole]),
        shapely.union_all(_cut(triangles[touching & ~whole], low, high)),
    )


def _cut(triangles: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the areas that large triangles cover between two heights.

    Each is the convex hull of the corners and edge points at or between the heights.
    """
    following = np.roll(triangles, -1, axis=1)
    points, inside = [triangles], [(triangles[..., 1] >= low) & (triangles[..., 1] <= high)]
    for height in (low, high):
        above, below = triangles[..., 1] - height, height - following[..., 1]
        share = above / np.where(above + below == 0, 1.0, above + below)
        points.append(triangles + share[..., None] * (following - triangles))
        inside.append(above * below > 0)
    candidates, valid = np.concatenate(points, axis=1), np.concatenate(inside, axis=1)
    some = valid.argmax(axis=1)  # replaces invalid candidates
    chosen = np.where(valid, np.arange(valid.shape[1]), some[:, None])
    corners = np.take_along_axis(candidates, chosen[..., None], axis=1)[..., [0, 2]]
    hulls = shapely.convex_hull(shapely.multipoints(corners))
    flat = shapely.get_dimensions(hulls) < 2
    return np.where(flat, shapely.buffer(hulls, _LINE_WIDTH, quad_segs=1), hulls)


def _sizes(triangles: np.ndarray) -> np.ndarray:
    """Return the greater extent of each triangle along x and z."""
    return np.ptp(triangles[:, :, [0, 2]], axis=1).max(axis=1, initial=0.0)
