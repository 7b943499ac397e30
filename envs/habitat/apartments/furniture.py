"""Pieces of furniture.

The back of each piece is at z = 0 (the wall), its middle is at x = 0, and it faces +z.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from envs.habitat.apartments.fronts import books, fronts, panelled, picture, rings, screen
from envs.habitat.apartments.geometry import (
    Color,
    Face,
    Lamp,
    Material,
    Number,
    add,
    box,
    moved,
    prism,
)
from envs.habitat.apartments.pattern import pick_color, shaded
from envs.habitat.apartments.surfaces import foliage, lamp, plain, rug, stripes, wood

_WHITE: Color = (0.92, 0.92, 0.9)
_STEEL: Color = (0.62, 0.64, 0.66)
_DARK: Color = (0.13, 0.13, 0.15)
_WOODS: tuple[Color, ...] = (
    (0.62, 0.43, 0.25), (0.42, 0.26, 0.15), (0.78, 0.62, 0.42), (0.3, 0.2, 0.14), (0.85, 0.8, 0.72),
)  # fmt: skip
_CLOTHS: tuple[Color, ...] = (
    (0.62, 0.16, 0.15), (0.16, 0.32, 0.55), (0.25, 0.45, 0.3), (0.8, 0.6, 0.18), (0.45, 0.42, 0.4),
    (0.48, 0.25, 0.5), (0.75, 0.4, 0.2), (0.2, 0.5, 0.52), (0.8, 0.72, 0.6), (0.22, 0.22, 0.27),
)  # fmt: skip
_WARM: Color = (1.0, 0.85, 0.6)


class Piece(NamedTuple):
    """A piece of furniture, in metres."""

    faces: list[Face]
    width: Number  # along the wall
    depth: Number  # away from the wall
    height: Number
    lamps: tuple[Lamp, ...] = ()
    stands_free: bool = False  # whether it may be in the middle of the room


Maker = Callable[[np.random.Generator], Piece]


def _legs(width: Number, depth: Number, height: Number, material: Material) -> list[Face]:
    """Return four legs of a table whose back is at z = 0."""
    half, thick = width / 2, 0.05
    return [
        face
        for x in (-half, half - thick)
        for z in (0.0, depth - thick)
        for face in box((x, 0, z), (x + thick, height, z + thick), material, ("bottom", "top"))
    ]


def chair(generator: np.random.Generator) -> Piece:
    """Return a chair that faces +z."""
    timber = wood(pick_color(generator, _WOODS))
    cushion = plain(pick_color(generator, _CLOTHS))
    faces = [
        *_legs(0.42, 0.42, 0.42, timber),
        *box((-0.22, 0.42, 0), (0.22, 0.47, 0.44), timber, (), top=cushion),
        *box((-0.22, 0.47, 0), (0.22, 0.95, 0.04), timber, front=cushion),
    ]
    return Piece(faces, 0.46, 0.46, 0.95)


def desk(generator: np.random.Generator) -> Piece:
    """Return a desk with a monitor, a keyboard and a chair."""
    timber = wood(pick_color(generator, _WOODS))
    black, shine = plain(_DARK), screen(int(generator.integers(1000)))
    side = -1 if generator.random() < 0.5 else 1
    drawers = fronts(pick_color(generator, _WOODS), 3, 1)
    low, high = sorted((side * 0.68, side * 0.3))
    faces = [
        *box((-0.7, 0.7, 0), (0.7, 0.74, 0.68), timber, ()),
        *box((-side * 0.7 - 0.02, 0, 0), (-side * 0.7 + 0.02, 0.7, 0.66), timber),
        *box((low, 0, 0.02), (high, 0.7, 0.6), timber, ("bottom", "top"), front=drawers),
        *box((-0.3, 0.84, 0.14), (0.3, 1.2, 0.17), black, front=shine),
        *box((-0.04, 0.74, 0.12), (0.04, 0.86, 0.15), black),
        *box((-0.22, 0.74, 0.35), (0.22, 0.76, 0.5), plain((0.3, 0.3, 0.32))),
        *moved(chair(generator).faces, 2, (-side * 0.2, 0, 1.1)),
    ]
    return Piece(faces, 1.44, 1.12, 1.2)


def bed(generator: np.random.Generator, width: Number = 1.6) -> Piece:
    """Return a bed with bedside tables and lamps."""
    timber, cloth = wood(pick_color(generator, _WOODS)), pick_color(generator, _CLOTHS)
    blanket = (
        stripes(cloth, pick_color(generator, _CLOTHS), 0.2)
        if generator.random() < 0.4
        else plain(cloth, 0.08)
    )
    white, half = plain(_WHITE), width / 2
    faces = [
        *box((-half, 0, 0), (half, 1.05, 0.07), timber),
        *box((-half, 0, 0.07), (half, 0.3, 2.08), timber, ("bottom", "back")),
        *box((-half + 0.03, 0.3, 0.07), (half - 0.03, 0.5, 2.03), white, ("bottom", "back")),
        *box((-half - 0.01, 0.2, 0.75), (half + 0.01, 0.54, 2.1), blanket, ("bottom",)),
    ]
    pillows = (-0.4, 0.4) if width > 1.2 else (0.0,)
    for x in pillows:
        faces += box((x - 0.3, 0.5, 0.14), (x + 0.3, 0.64, 0.52), plain((0.97, 0.96, 0.93)))
    table = bedside_table(generator)
    beside = (half + 0.27, -half - 0.27) if width > 1.2 else (half + 0.27,)
    middle = 0.0 if len(beside) > 1 else -0.27
    for x in beside:
        faces += moved(table.faces, 0, (x, 0, 0))
    lamps = tuple(_beside(light, x + middle) for light in table.lamps for x in beside)
    faces = moved(faces, 0, (middle, 0, 0))
    return Piece(faces, width + 0.54 * len(beside), 2.12, 1.05, lamps)


def single_bed(generator: np.random.Generator) -> Piece:
    """Return a bed for one person."""
    return bed(generator, 0.95)


def _beside(light: Lamp, x: Number) -> Lamp:
    """Move a lamp along the wall."""
    return light._replace(position=add(light.position, (x, 0, 0)))


def bedside_table(generator: np.random.Generator) -> Piece:
    """Return a small chest with a lamp on it."""
    color = pick_color(generator, _WOODS)
    shade = lamp((1.0, 0.9, 0.7))
    faces = [
        *box((-0.22, 0, 0.02), (0.22, 0.5, 0.4), wood(color), front=fronts(color, 2, 1)),
        *prism((0, 0.2), (0.02, 0.02), (0.5, 0.72), plain(_DARK), 4),
        *prism((0, 0.2), (0.13, 0.08), (0.72, 0.92), shade, 8),
    ]
    return Piece(faces, 0.46, 0.42, 0.92, (Lamp((0, 1.0, 0.25), shaded(_WARM, 0.35)),))


def wardrobe(generator: np.random.Generator) -> Piece:
    """Return a wardrobe with two or three doors."""
    color, doors = pick_color(generator, _WOODS), int(generator.integers(2, 4))
    width = 0.55 * doors
    front = fronts(color, 1, doors)
    faces = box((-width / 2, 0, 0), (width / 2, 2.1, 0.58), wood(color), front=front)
    return Piece(faces, width, 0.6, 2.1)


def chest(generator: np.random.Generator) -> Piece:
    """Return a chest of drawers with a plant on it and a mirror above it."""
    color = pick_color(generator, _WOODS)
    glass = plain((0.7, 0.78, 0.82))
    faces = [
        *box((-0.5, 0, 0), (0.5, 0.85, 0.45), wood(color), front=fronts(color, 4, 2)),
        *box((-0.32, 1.1, 0), (0.32, 1.9, 0.03), wood(shaded(color, 0.7)), ("back",)),
        *box((-0.27, 1.15, 0.03), (0.27, 1.85, 0.035), glass, ("back",)),
        *moved(_leaves(0.1, 0.3, generator), 0, (0.35, 0.85, 0.22)),
    ]
    return Piece(faces, 1.0, 0.46, 1.9)


def sofa(generator: np.random.Generator) -> Piece:
    """Return a sofa with cushions, a rug and a low table."""
    color = pick_color(generator, _CLOTHS)
    cloth, seat = plain(color, 0.06), plain(shaded(color, 1.15), 0.06)
    accents = [plain(pick_color(generator, _CLOTHS)) for _ in range(2)]
    timber = wood(pick_color(generator, _WOODS))
    woven = rug(
        pick_color(generator, _CLOTHS),
        pick_color(generator, _CLOTHS),
        pick_color(generator, _WOODS),
    )
    faces = [
        *box((-1.0, 0.04, 0), (1.0, 0.42, 0.88), cloth, (), top=seat),
        *box((-1.0, 0.42, 0), (1.0, 0.85, 0.24), cloth),
        *box((-1.0, 0.42, 0.24), (-0.8, 0.62, 0.88), cloth),
        *box((0.8, 0.42, 0.24), (1.0, 0.62, 0.88), cloth),
        *box((-0.72, 0.42, 0.24), (-0.32, 0.76, 0.4), accents[0]),
        *box((0.3, 0.42, 0.24), (0.7, 0.76, 0.4), accents[1]),
        *box((-1.2, 0, 0.95), (1.2, 0.012, 2.5), woven),
        *box((-0.5, 0.36, 1.45), (0.5, 0.4, 2.0), timber, ()),
        *moved(_legs(0.9, 0.45, 0.36, timber), 0, (0, 0, 1.5)),
    ]
    return Piece(faces, 2.05, 2.1, 0.85)


def armchair(generator: np.random.Generator) -> Piece:
    """Return an armchair with a floor lamp."""
    color = pick_color(generator, _CLOTHS)
    cloth = plain(color, 0.06)
    light = floor_lamp(generator)
    faces = [
        *box((-0.4, 0.05, 0.05), (0.4, 0.42, 0.8), cloth, (), top=plain(shaded(color, 1.2))),
        *box((-0.4, 0.42, 0.05), (0.4, 0.9, 0.25), cloth),
        *box((-0.4, 0.42, 0.25), (-0.26, 0.62, 0.8), cloth),
        *box((0.26, 0.42, 0.25), (0.4, 0.62, 0.8), cloth),
        *moved(light.faces, 0, (0.62, 0, 0)),
    ]
    lamps = tuple(_beside(one, 0.62) for one in light.lamps)
    return Piece(faces, 1.66, 0.85, 1.6, lamps)


def floor_lamp(generator: np.random.Generator) -> Piece:
    """Return a floor lamp."""
    faces = [
        *prism((0, 0.2), (0.14, 0.14), (0, 0.03), plain(_DARK), 8),
        *prism((0, 0.2), (0.02, 0.02), (0.03, 1.4), plain(_DARK), 4),
        *prism((0, 0.2), (0.2, 0.13), (1.35, 1.62), lamp((1.0, 0.88, 0.65)), 8),
    ]
    return Piece(faces, 0.42, 0.42, 1.62, (Lamp((0, 1.75, 0.28), shaded(_WARM, 0.7)),))


def television(generator: np.random.Generator) -> Piece:
    """Return a low cupboard with a television."""
    color, shine = pick_color(generator, _WOODS), screen(int(generator.integers(1000)))
    faces = [
        *box((-0.85, 0, 0), (0.85, 0.45, 0.42), wood(color), front=fronts(color, 1, 3)),
        *box((-0.6, 0.52, 0.12), (0.6, 1.2, 0.17), plain(_DARK), front=shine),
        *box((-0.15, 0.45, 0.1), (0.15, 0.52, 0.2), plain(_DARK)),
    ]
    return Piece(faces, 1.72, 0.44, 1.2)


def bookcase(generator: np.random.Generator) -> Piece:
    """Return a bookcase."""
    color, width = pick_color(generator, _WOODS), float(generator.choice([0.8, 1.0, 1.4]))
    faces = box(
        (-width / 2, 0, 0), (width / 2, 1.95, 0.3), wood(color), front=books(shaded(color, 0.9))
    )
    return Piece(faces, width, 0.32, 1.95)


def plant(generator: np.random.Generator) -> Piece:
    """Return a tall plant in a pot."""
    pot = plain(pick_color(generator, _CLOTHS))
    faces = [
        *prism((0, 0.22), (0.14, 0.19), (0, 0.34), pot, 8, plain((0.2, 0.14, 0.1))),
        *moved(_leaves(0.2, 0.9, generator), 0, (0, 0.34, 0.22)),
    ]
    return Piece(faces, 0.46, 0.46, 1.3)


def _leaves(radius: Number, height: Number, generator: np.random.Generator) -> list[Face]:
    """Return a bush around x = z = 0."""
    green = foliage((0.16, 0.36 + 0.14 * float(generator.random()), 0.12))
    return [
        *prism((0, 0), (0.02, 0.02), (0, height * 0.35), plain((0.3, 0.2, 0.1)), 4),
        *prism((0, 0), (radius * 0.5, radius), (height * 0.25, height * 0.6), green, 7),
        *prism((0, 0), (radius, radius * 0.2), (height * 0.6, height), green, 7),
    ]


def cabinet(generator: np.random.Generator) -> Piece:
    """Return a steel filing cabinet."""
    front = fronts(_STEEL, 4, 1)
    return Piece(box((-0.24, 0, 0), (0.24, 1.3, 0.55), plain(_STEEL), front=front), 0.5, 0.58, 1.3)


def hanging(generator: np.random.Generator) -> Piece:
    """Return a picture for the wall, 0.6 to 1.1 m wide, centred at y = 0."""
    width, height = float(generator.uniform(0.6, 1.1)), float(generator.uniform(0.5, 0.8))
    painting = picture(int(generator.integers(10_000)))
    frame = plain(_DARK)
    low, high = (-width / 2, -height / 2, 0.0), (width / 2, height / 2, 0.03)
    return Piece(box(low, high, frame, ("back",), front=painting), width, 0.03, height)


def toys(generator: np.random.Generator) -> Piece:
    """Return coloured boxes and a ball."""
    faces = []
    for x, high in ((-0.4, 0.3), (0.0, 0.36), (0.38, 0.28)):
        color = plain(pick_color(generator, _CLOTHS))
        faces += box((x - 0.17, 0, 0.03), (x + 0.17, high, 0.36), color)
    faces += prism((0.02, 0.2), (0.1, 0.1), (0.36, 0.52), plain((0.85, 0.2, 0.2)), 8)
    return Piece(faces, 1.2, 0.4, 0.55)


def hall_stand(generator: np.random.Generator) -> Piece:
    """Return a narrow shoe cupboard with coats above it."""
    color = pick_color(generator, _WOODS)
    faces = [
        *box((-0.45, 0, 0), (0.45, 0.8, 0.22), wood(color), front=fronts(color, 2, 2)),
        *box((-0.5, 1.68, 0), (0.5, 1.76, 0.05), wood(color), ("back",)),
    ]
    for x in (-0.35, 0.0, 0.33):
        coat = plain(pick_color(generator, _CLOTHS), 0.1)
        faces += box((x - 0.13, 1.0, 0.02), (x + 0.13, 1.66, 0.14), coat, ("back",))
    return Piece(faces, 1.0, 0.24, 1.76)


def whiteboard(generator: np.random.Generator) -> Piece:
    """Return a whiteboard above a low shelf."""
    color = pick_color(generator, _WOODS)
    board = stripes((0.95, 0.95, 0.95), (0.8, 0.86, 0.95), 0.17, upright=False)
    faces = [
        *box((-0.8, 0.9, 0), (0.8, 1.9, 0.04), plain(_STEEL), ("back",), front=board),
        *box((-0.7, 0, 0), (0.7, 0.42, 0.35), wood(color), front=books(color, 1)),
    ]
    return Piece(faces, 1.64, 0.37, 1.9)


def door_leaf(width: Number, height: Number, color: Color) -> list[Face]:
    """Return an open door, from its hinge at x = z = 0 along +z."""
    panels = panelled(color)
    low, high = (-0.04, 0.01, 0.0), (0.0, height, width)
    return box(low, high, plain(color), ("bottom",), left=panels, right=panels)


def washing_machine(generator: np.random.Generator) -> Piece:
    """Return a washing machine."""
    front = rings(_WHITE, (0.25, 0.3, 0.36), (1, 1))
    return Piece(box((-0.3, 0, 0), (0.3, 0.85, 0.58), plain(_WHITE), front=front), 0.62, 0.6, 0.85)
