"""Flat faces, each with its own rectangle of texture, of which apartments consist.

Lengths are in metres, and y is up. A face is visible from the side to which `across x up` points.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

Number = int | float  # the run-time type checks do not accept an int as a float
Vector = tuple[Number, Number, Number]
Color = tuple[Number, Number, Number]  # red, green, blue in 0..1
Corner = tuple[Number, Number]

SQUARE: tuple[Corner, ...] = ((0, 0), (1, 0), (1, 1), (0, 1))
SIDES = ("front", "back", "left", "right", "top", "bottom")


class Spots(NamedTuple):
    """Points of a surface at which a material is evaluated."""

    across: np.ndarray  # float [...], metres from the pattern's lower left corner
    up: np.ndarray  # float [...], likewise
    size: Corner  # width and height of the face
    generator: np.random.Generator  # of the random differences between faces


class Material(NamedTuple):
    """The look of a surface."""

    color: Callable[[Spots], np.ndarray]  # float [..., 3], red, green and blue in 0..1
    texels: Number = 24.0  # per metre
    glows: bool = False  # whether it shines itself, and ignores light and shadows


class Face(NamedTuple):
    """A polygon inside a rectangle."""

    origin: Vector  # the rectangle's lower left corner
    across: Vector  # from there to the lower right corner
    up: Vector  # from there to the upper left corner
    material: Material
    outline: tuple[Corner, ...] = SQUARE  # corners in 0..1 of the rectangle, counter-clockwise
    shift: Corner = (0.0, 0.0)  # position of the face in the material's pattern


class Lamp(NamedTuple):
    """A point light."""

    position: Vector
    color: Color
    towards: Vector | None = None  # direction of a light that shines only to one side


def box(
    low: Vector,
    high: Vector,
    material: Material,
    hidden: Iterable[str] = ("bottom",),
    **sides: Material,
) -> list[Face]:
    """Return the faces of a box between two corners.

    Args:
        low: the corner with the smallest coordinates.
        high: the opposite corner.
        material: material of all sides without their own.
        hidden: sides to leave out because nobody can see them. The front faces +z.
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
    """Return the faces of a prism or truncated cone: its sides and its top.

    Args:
        centre: x and z of the axis.
        radii: at the bottom and at the top.
        heights: of the bottom and of the top.
        material: material of the sides.
        sides: number of sides.
        top: material of the top (default: that of the sides).
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
    """Return the face of a trapezium whose first and third sides are parallel."""
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
    """Turn faces left by `turns` quarter turns about the y axis, then move them by `place`."""
    return [
        face._replace(
            origin=add(turned(face.origin, turns), place),
            across=turned(face.across, turns),
            up=turned(face.up, turns),
        )
        for face in faces
    ]


def turned(arrow: Vector, turns: int) -> Vector:
    """Turn a vector left by quarter turns about the y axis."""
    x, y, z = arrow
    for _ in range(turns % 4):
        x, z = z, -x
    return x, y, z


def add(one: Vector, other: Vector) -> Vector:
    """Return the sum of two vectors."""
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def vector(numbers: np.ndarray) -> Vector:
    """Return an array of three numbers as a tuple."""
    x, y, z = (float(number) for number in numbers)
    return x, y, z


def size(face: Face) -> Corner:
    """Return the width and height of a face."""
    return float(np.linalg.norm(face.across)), float(np.linalg.norm(face.up))


def normal(face: Face) -> np.ndarray:
    """Return the unit normal of a face."""
    cross = np.cross(face.across, face.up)
    return cross / max(float(np.linalg.norm(cross)), 1e-12)
