"""Flat faces, each with a rectangle of texture of its own: what the apartments are made of.

Lengths are in metres, y is up. A face is seen from the side that `across x up` points to.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

Number = int | float  # checks at run time do not take an integer for a float
Vector = tuple[Number, Number, Number]
Color = tuple[Number, Number, Number]  # red, green, blue in 0..1
Corner = tuple[Number, Number]

SQUARE: tuple[Corner, ...] = ((0, 0), (1, 0), (1, 1), (0, 1))
SIDES = ("front", "back", "left", "right", "top", "bottom")


class Spots(NamedTuple):
    """Points of a surface."""

    across: np.ndarray  # float [...], metres from the pattern's lower left corner
    up: np.ndarray  # float [...], the same
    size: Corner  # width and height of the face
    generator: np.random.Generator  # of what differs from face to face


class Material(NamedTuple):
    """How a surface looks."""

    color: Callable[[Spots], np.ndarray]  # float [..., 3], red, green and blue in 0..1
    texels: Number = 24.0  # a metre
    glows: bool = False  # shines by itself: no light falls on it


class Face(NamedTuple):
    """A polygon within a rectangle."""

    origin: Vector  # the rectangle's lower left corner
    across: Vector  # from there to the lower right one
    up: Vector  # and to the upper left one
    material: Material
    outline: tuple[Corner, ...] = SQUARE  # corners in parts of the rectangle, counter-clockwise
    shift: Corner = (0.0, 0.0)  # where in the material's pattern the face begins


class Lamp(NamedTuple):
    """A point that shines."""

    position: Vector
    color: Color
    towards: Vector | None = None  # it shines to that side only, most strongly straight ahead


def box(
    low: Vector,
    high: Vector,
    material: Material,
    hidden: Iterable[str] = ("bottom",),
    **sides: Material,
) -> list[Face]:
    """Returns the faces of a box between two corners.

    Args:
        low: the corner of least coordinates.
        high: the opposite one.
        material: of all sides that have none of their own.
        hidden: sides that nobody can see, to be left out. The front looks along +z.
        **sides: materials of single sides.
    """
    (x0, y0, z0), (x1, y1, z1) = low, high
    width, height, depth = x1 - x0, y1 - y0, z1 - z0
    frames: dict[str, tuple[Vector, Vector, Vector]] = {
        "front": ((x0, y0, z1), (width, 0, 0), (0, height, 0)),
        "back": ((x1, y0, z0), (-width, 0, 0), (0, height, 0)),
        "left": ((x0, y0, z0), (0, 0, depth), (0, height, 0)),
        "right": ((x1, y0, z1), (0, 0, -depth), (0, height, 0)),
        "top": ((x0, y1, z1), (width, 0, 0), (0, 0, -depth)),
        "bottom": ((x0, y0, z0), (width, 0, 0), (0, 0, depth)),
    }
    return [Face(*frames[side], sides.get(side, material)) for side in SIDES if side not in hidden]


def prism(
    centre: Corner,
    radii: Corner,
    heights: Corner,
    material: Material,
    sides: int = 8,
    top: Material | None = None,
) -> list[Face]:
    """Returns the faces of a round thing: its sides and its top.

    Args:
        centre: x and z of its axis.
        radii: at its foot and at its top.
        heights: of its foot and of its top.
        material: of its sides.
        sides: how many there are.
        top: the top's material; None: the sides'.
    """
    x, z = centre
    angles = np.arange(sides) * 2 * np.pi / sides
    spokes = np.stack([np.cos(angles), -np.sin(angles)], axis=-1)  # counter-clockwise from above
    faces = []
    for spoke, following in zip(spokes, np.roll(spokes, -1, axis=0), strict=True):
        corners = [
            np.array((x + radius * way[0], height, z + radius * way[1]))
            for radius, height in zip(radii, heights, strict=True)
            for way in (spoke, following)
        ]
        faces.append(_quadrangle(corners[0], corners[1], corners[3], corners[2], material))
    outline = tuple((0.5 + 0.5 * float(c), 0.5 - 0.5 * float(s)) for c, s in spokes)
    radius, height = radii[1], heights[1]
    cap = ((x - radius, height, z + radius), (2 * radius, 0.0, 0.0), (0.0, 0.0, -2 * radius))
    return [*faces, Face(*cap, top or material, outline)]


def _quadrangle(
    first: np.ndarray, second: np.ndarray, third: np.ndarray, fourth: np.ndarray, material: Material
) -> Face:
    """Returns the face of a trapezium whose first and third sides are parallel."""
    low, high = second - first, third - fourth
    wide = np.linalg.norm(low) >= np.linalg.norm(high)
    across = low if wide else high
    length = max(float(np.linalg.norm(across)), 1e-6)
    unit = across / length
    middle_low, middle_high = (first + second) / 2, (third + fourth) / 2
    up = middle_high - middle_low
    origin = middle_low - across / 2

    def part(corner: np.ndarray, row: Number) -> Corner:
        return float((corner - origin - row * up) @ unit / length), row

    outline = (part(first, 0.0), part(second, 0.0), part(third, 1.0), part(fourth, 1.0))
    return Face(vector(origin), vector(across), vector(up), material, outline)


def moved(faces: Iterable[Face], turns: int, place: Vector) -> list[Face]:
    """Turns faces to the left by `turns` quarter turns about the y axis, then moves them."""
    return [
        face._replace(
            origin=add(turned(face.origin, turns), place),
            across=turned(face.across, turns),
            up=turned(face.up, turns),
        )
        for face in faces
    ]


def turned(arrow: Vector, turns: int) -> Vector:
    """Turns a vector to the left by quarter turns about the y axis."""
    x, y, z = arrow
    for _ in range(turns % 4):
        x, z = z, -x
    return x, y, z


def add(one: Vector, other: Vector) -> Vector:
    """Adds two vectors."""
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def vector(numbers: np.ndarray) -> Vector:
    """Returns an array of three numbers as a tuple."""
    x, y, z = (float(number) for number in numbers)
    return x, y, z


def size(face: Face) -> Corner:
    """Returns a face's width and height."""
    return float(np.linalg.norm(face.across)), float(np.linalg.norm(face.up))


def normal(face: Face) -> np.ndarray:
    """Returns the unit vector that a face looks along."""
    cross = np.cross(face.across, face.up)
    return cross / max(float(np.linalg.norm(cross)), 1e-12)
