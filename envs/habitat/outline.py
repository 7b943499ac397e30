"""Triangles seen from above: what they cover, of a scan's millions as of a drawing's few."""

import numpy as np
import shapely
import trimesh

_CELL = 0.025  # metres: triangles smaller than a few of these are drawn as cells
_SMALL = 0.1  # metres
_HAIR = 1e-4  # metres


def footprint(triangles: np.ndarray) -> shapely.Geometry:
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


def between(triangles: np.ndarray, low: float, high: float) -> np.ndarray:
    """Cuts triangles [F, 3, 3] to what lies between two heights; returns triangles."""
    bottom, top = triangles[:, :, 1].min(axis=1), triangles[:, :, 1].max(axis=1)
    touching = triangles[(bottom < high) & (top > low)]
    corners = touching.reshape(-1, 3)
    faces = np.arange(len(corners)).reshape(-1, 3)
    for height, upwards in ((low, 1.0), (high, -1.0)):
        corners, faces, _ = trimesh.intersections.slice_faces_plane(
            corners, faces, plane_normal=(0.0, upwards, 0.0), plane_origin=(0.0, height, 0.0)
        )
    return corners[faces]
