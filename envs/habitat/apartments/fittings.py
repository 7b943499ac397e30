"""Kitchens, bathrooms and tables with chairs, in the same coordinates as furniture."""

import numpy as np

from envs.habitat.apartments.fronts import fronts, rings
from envs.habitat.apartments.furniture import Piece, chair
from envs.habitat.apartments.geometry import Color, Face, Material, Number, box, moved, prism
from envs.habitat.apartments.pattern import pick_color, shaded
from envs.habitat.apartments.surfaces import plain, rug, wood

_WHITE: Color = (0.94, 0.94, 0.93)
_STEEL: Color = (0.66, 0.68, 0.7)
_BLACK: Color = (0.1, 0.1, 0.11)
_KITCHENS: tuple[Color, ...] = (
    (0.85, 0.83, 0.78), (0.35, 0.48, 0.42), (0.72, 0.5, 0.3), (0.28, 0.36, 0.48), (0.75, 0.3, 0.26),
)  # fmt: skip
_TABLES: tuple[Color, ...] = ((0.6, 0.42, 0.25), (0.8, 0.66, 0.46), (0.36, 0.24, 0.16))


def kitchen(generator: np.random.Generator) -> Piece:
    """Return cupboards with a cooker, an oven, a sink and a refrigerator."""
    color = pick_color(generator, _KITCHENS)
    body, top = plain(color), plain(shaded(pick_color(generator, _TABLES), 0.8))
    hob, oven = rings(_BLACK, (0.5, 0.12, 0.08), (2, 2)), rings((0.2, 0.2, 0.22), _BLACK, (1, 1))
    basin = rings(_STEEL, (0.35, 0.37, 0.4), (1, 1))
    faces = [
        *box((-1.3, 0, 0), (-0.1, 0.86, 0.58), body, front=fronts(color, 1, 2)),
        *box((-0.1, 0, 0), (0.5, 0.86, 0.58), plain((0.3, 0.3, 0.32)), front=oven),
        *box((0.5, 0, 0), (0.9, 0.86, 0.58), body, front=fronts(color, 3, 1)),
        *box((-1.3, 0.86, 0), (0.9, 0.9, 0.6), top, ()),
        *box((-0.08, 0.9, 0.05), (0.48, 0.91, 0.55), hob),
        *box((-1.0, 0.9, 0.1), (-0.5, 0.91, 0.5), basin),
        *box((-0.77, 0.91, 0.04), (-0.73, 1.15, 0.08), plain(_STEEL)),
        *box((-1.3, 1.45, 0), (-0.1, 2.1, 0.34), body, ("back",), front=fronts(color, 1, 3)),
        *box((-0.05, 1.6, 0), (0.45, 1.75, 0.45), plain(_STEEL), ("back",)),
        *box((-0.01, 1.75, 0), (0.29, 2.3, 0.3), plain(_STEEL), ("back",)),
        *box((0.95, 0, 0), (1.58, 1.85, 0.62), plain(_WHITE), front=fronts(_WHITE, 2, 1, _STEEL)),
    ]
    return Piece(moved(faces, 0, (-0.14, 0, 0)), 2.9, 0.64, 2.3)


def dining_table(generator: np.random.Generator) -> Piece:
    """Return a table for four, with chairs and a bowl."""
    timber, seed = wood(pick_color(generator, _TABLES)), int(generator.integers(1 << 30))
    faces = [
        *box((-0.7, 0.7, 0.6), (0.7, 0.74, 1.4), timber, ()),
        *_feet(-0.65, 0.65, 0.65, 1.35, 0.7, timber),
        *prism((0.1, 1.0), (0.09, 0.16), (0.74, 0.84), plain((0.85, 0.6, 0.2)), 8),
    ]
    for x in (-0.35, 0.35):
        faces += moved(chair(np.random.default_rng(seed)).faces, 0, (x, 0, 0.12))
        faces += moved(chair(np.random.default_rng(seed)).faces, 2, (x, 0, 1.88))
    return Piece(faces, 1.45, 2.0, 0.95, stands_free=True)


def round_table(generator: np.random.Generator) -> Piece:
    """Return a round table with three chairs."""
    color, seed = pick_color(generator, _TABLES), int(generator.integers(1 << 30))
    faces = [
        *prism((0, 0.9), (0.25, 0.05), (0, 0.1), wood(color), 8),
        *prism((0, 0.9), (0.05, 0.05), (0.1, 0.7), wood(color), 6),
        *prism((0, 0.9), (0.46, 0.46), (0.7, 0.74), wood(color), 12),
        *prism((0, 0.9), (0.06, 0.09), (0.74, 0.95), plain((0.75, 0.3, 0.3)), 6),
    ]
    for turns, place in ((0, (0.0, 0, 0.2)), (2, (0.0, 0, 1.6)), (1, (-0.7, 0, 0.9))):
        faces += moved(chair(np.random.default_rng(seed)).faces, turns, place)
    return Piece(faces, 1.5, 1.8, 0.95, stands_free=True)


def meeting_table(generator: np.random.Generator) -> Piece:
    """Return a long table with six chairs on a rug."""
    timber, seed = wood(pick_color(generator, _TABLES)), int(generator.integers(1 << 30))
    woven = rug((0.35, 0.38, 0.42), (0.2, 0.22, 0.26), (0.45, 0.47, 0.5))
    faces = [
        *box((-1.1, 0.7, 0.6), (1.1, 0.74, 1.5), timber, ()),
        *_feet(-1.0, 1.0, 0.7, 1.4, 0.7, timber),
        *box((-1.3, 0, 0.1), (1.3, 0.01, 2.0), woven),
    ]
    for x in (-0.7, 0.0, 0.7):
        faces += moved(chair(np.random.default_rng(seed)).faces, 0, (x, 0, 0.12))
        faces += moved(chair(np.random.default_rng(seed)).faces, 2, (x, 0, 1.98))
    return Piece(faces, 2.25, 2.1, 0.95, stands_free=True)


def _feet(
    x0: Number, x1: Number, z0: Number, z1: Number, height: Number, material: Material
) -> list[Face]:
    """Return four legs at the corners of a rectangle."""
    return [
        face
        for x in (x0, x1)
        for z in (z0, z1)
        for face in box(
            (x - 0.03, 0, z - 0.03), (x + 0.03, height, z + 0.03), material, ("bottom", "top")
        )
    ]


def bathtub(generator: np.random.Generator) -> Piece:
    """Return a bathtub with water in it."""
    white, water = plain(_WHITE), plain((0.6, 0.8, 0.86), 0.06)
    faces = [
        *box((-0.8, 0, 0), (0.8, 0.42, 0.72), white, ("bottom", "back"), top=water),
        *box((-0.8, 0.42, 0), (0.8, 0.55, 0.08), white, ("bottom",)),
        *box((-0.8, 0.42, 0.64), (0.8, 0.55, 0.72), white, ("bottom",)),
        *box((-0.8, 0.42, 0.08), (-0.7, 0.55, 0.64), white, ("bottom",)),
        *box((0.7, 0.42, 0.08), (0.8, 0.55, 0.64), white, ("bottom",)),
        *box((0.6, 0.55, 0.34), (0.75, 0.75, 0.38), plain(_STEEL)),
    ]
    return Piece(faces, 1.62, 0.74, 0.75)


def toilet(generator: np.random.Generator) -> Piece:
    """Return a toilet."""
    white = plain(_WHITE)
    faces = [
        *box((-0.2, 0.38, 0), (0.2, 0.8, 0.18), white),
        *prism((0, 0.42), (0.14, 0.2), (0, 0.4), white, 8, plain((0.8, 0.82, 0.84))),
        *box((-0.12, 0, 0), (0.12, 0.4, 0.3), white),
    ]
    return Piece(faces, 0.46, 0.66, 0.8)


def washbasin(generator: np.random.Generator) -> Piece:
    """Return a washbasin on a cupboard, with a mirror above it."""
    color = pick_color(generator, _KITCHENS)
    basin = rings(_WHITE, (0.72, 0.76, 0.8), (1, 1))
    faces = [
        *box((-0.4, 0, 0), (0.4, 0.78, 0.45), plain(color), front=fronts(color, 1, 2)),
        *box((-0.42, 0.78, 0), (0.42, 0.88, 0.48), plain(_WHITE), (), top=basin),
        *box((-0.03, 0.88, 0.05), (0.03, 1.02, 0.16), plain(_STEEL)),
        *box((-0.38, 1.15, 0), (0.38, 1.95, 0.03), plain((0.75, 0.82, 0.85)), ("back",)),
    ]
    return Piece(faces, 0.86, 0.5, 1.95)
