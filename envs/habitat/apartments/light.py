"""Compute the light on every face, from lamps and windows, with shadows.

The light is computed once, on a coarse grid, and painted into the textures. The scene then looks
the same in every renderer, with or without light.
"""

from typing import NamedTuple

import numpy as np
from embreex.mesh_construction import TriangleMesh
from embreex.rtcore_scene import EmbreeScene

from envs.habitat.apartments.geometry import Face, Lamp, normal, size

_GRID = 0.16  # metres between the points at which light is computed
_LIFT = 0.02  # metres from a face to those points
_CORNER = 1.2  # metres; closer surfaces block ambient light
_RAYS = 24
_AMBIENT = 0.42
_SOFT = 0.6  # square metres added to squared distances, because lamps are not points
_FADING = 0.006  # weaker light of a lamp is ignored


class Points(NamedTuple):
    """The points at which light is computed."""

    position: np.ndarray  # float32[N, 3]
    normal: np.ndarray  # float32[N, 3]
    shapes: list[tuple[int, int]]  # rows and columns of each face's grid


def shine(faces: list[Face], lamps: list[Lamp], triangles: np.ndarray) -> list[np.ndarray]:
    """Return the light on a grid of points of each face.

    Args:
        faces: all faces of the scene.
        lamps: all lamps of the scene.
        triangles: float [T, 3, 3], which cast shadows.

    Returns:
        Float [rows, columns, 3] for each face; 1 is bright.
    """
    points = _points(faces)
    scene = EmbreeScene()
    corners = triangles.reshape(-1, 3).astype(np.float32)
    TriangleMesh(scene, corners, np.arange(len(corners), dtype=np.int32).reshape(-1, 3))
    light = _AMBIENT * _openness(scene, points)[:, None] * _average(lamps)
    for lamp in lamps:
        light += _from_lamp(scene, points, lamp)
    ends = np.cumsum([rows * columns for rows, columns in points.shapes])[:-1]
    parts = np.split(light, ends)
    return [part.reshape(*shape, 3) for part, shape in zip(parts, points.shapes, strict=True)]


def _points(faces: list[Face]) -> Points:
    positions, normals, shapes = [], [], []
    for face in faces:
        columns, rows = (max(2, round(length / _GRID)) for length in size(face))
        across = (np.arange(columns) + 0.5) / columns
        up = (np.arange(rows) + 0.5) / rows
        facing = normal(face)
        place = np.array(face.origin) + across[None, :, None] * np.array(face.across)
        place = place + up[:, None, None] * np.array(face.up) + _LIFT * facing
        positions.append(place.reshape(-1, 3))
        normals.append(np.broadcast_to(facing, (rows * columns, 3)))
        shapes.append((rows, columns))
    return Points(
        np.concatenate(positions).astype(np.float32),
        np.concatenate(normals).astype(np.float32),
        shapes,
    )


def _average(lamps: list[Lamp]) -> np.ndarray:
    """Return the average colour of all lamps, with brightness 1."""
    colors = np.array([lamp.color for lamp in lamps]).sum(axis=0)
    return colors / colors.mean()


def _openness(scene: EmbreeScene, points: Points) -> np.ndarray:
    """Return the share of its surroundings that each point sees, 0..1 (ambient occlusion)."""
    generator = np.random.default_rng(0)
    free = np.zeros(len(points.position), np.float32)
    reach = np.full(len(free), _CORNER, np.float32)
    for _ in range(_RAYS):
        around = generator.normal(size=(len(free), 3)).astype(np.float32)
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        ray = points.normal * 1.01 + around
        ray /= np.linalg.norm(ray, axis=1, keepdims=True)
        free += scene.run(points.position, ray, reach, query="OCCLUDED") == -1
    return free / _RAYS


def _from_lamp(scene: EmbreeScene, points: Points, lamp: Lamp) -> np.ndarray:
    to_lamp = np.array(lamp.position, np.float32) - points.position
    square = (to_lamp * to_lamp).sum(axis=1)
    distance = np.sqrt(square) + 1e-6
    strength = np.maximum((to_lamp * points.normal).sum(axis=1), 0.0) / distance / (square + _SOFT)
    if lamp.towards is not None:
        strength *= np.maximum(-(to_lamp @ np.array(lamp.towards, np.float32)), 0.0) / distance
    near = np.flatnonzero(strength > _FADING)
    reach = np.full(len(near), 1.0 - 1e-3, np.float32)
    hidden = scene.run(points.position[near], to_lamp[near], reach, query="OCCLUDED") != -1
    strength[near[hidden]] = 0.0
    strength[strength <= _FADING] = 0.0
    return strength[:, None] * np.array(lamp.color)
