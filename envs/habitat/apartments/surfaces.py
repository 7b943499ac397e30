"""Materials of floors, walls and plain surfaces.

Patterns are no finer than a view of 64 pixels can show.
"""

import numpy as np

from envs.habitat.apartments.geometry import Color, Material, Spots
from envs.habitat.apartments.pattern import (
    colored,
    edge_distance,
    either,
    noise,
    random_of,
)

_FINE = 40.0  # texels per metre, of objects that are seen from close by
_ROUGH = 12.0


def plain(color: Color, grain: float = 0.03, texels: float = 16.0) -> Material:
    """Return one colour with slight variations."""

    def paint(at: Spots) -> np.ndarray:
        return colored(color, 1 + grain * noise(at.generator, at.across, at.up, 0.12))

    return Material(paint, texels)


def planks(color: Color) -> Material:
    """Return a floor of boards."""

    def paint(at: Spots) -> np.ndarray:
        row = np.floor(at.up / 0.14).astype(int)
        board = np.floor(at.across / 1.3 + random_of(row) * 7.0).astype(int)
        tone = 0.86 + 0.28 * random_of(row * 57 + board * 131)
        grain = 0.05 * noise(at.generator, at.across * 0.15, at.up, 0.04)
        seam = np.where(at.up / 0.14 - row < 0.18, 0.82, 1.0)
        return colored(color, (tone + grain) * seam)

    return Material(paint, 28.0)


def tiles(color: Color, other: Color, width: float) -> Material:
    """Return square tiles of two alternating colours, with grout between them."""

    def paint(at: Spots) -> np.ndarray:
        column, row = np.floor(at.across / width).astype(int), np.floor(at.up / width).astype(int)
        tone = 0.96 + 0.08 * random_of(column * 31 + row * 17)
        seam = np.minimum(at.across / width - column, at.up / width - row) < 0.12
        painted = either((column + row) % 2 == 1, other, color) * tone[..., None]
        return either(seam, painted * 0.75, painted)

    return Material(paint, 28.0)


def bricks(color: Color) -> Material:
    """Return a brick wall."""

    def paint(at: Spots) -> np.ndarray:
        row = np.floor(at.up / 0.12).astype(int)
        shifted = at.across / 0.36 + 0.5 * (row % 2)
        column = np.floor(shifted).astype(int)
        seam = (at.up / 0.12 - row < 0.25) | (shifted - column < 0.09)
        tone = 0.8 + 0.35 * random_of(row * 91 + column * 23)
        return either(seam, 0.72, colored(color, tone))

    return Material(paint, 32.0)


def stripes(color: Color, other: Color, width: float = 0.16, upright: bool = True) -> Material:
    """Return stripes of two colours, for wallpaper or blankets."""

    def paint(at: Spots) -> np.ndarray:
        along = at.across if upright else at.up
        return either(np.floor(along / width) % 2 == 1, other, color)

    return Material(paint, 24.0)


def dado(lower: Material, upper: Material, height: float) -> Material:
    """Return a wall with one material below a height and another above it."""

    def paint(at: Spots) -> np.ndarray:
        painted = either(at.up < height, lower.color(at), upper.color(at))
        return either(np.abs(at.up - height) < 0.035, painted * 0.7, painted)

    return Material(paint, max(lower.texels, upper.texels))


def carpet(color: Color) -> Material:
    """Return a carpet without a pattern."""

    def paint(at: Spots) -> np.ndarray:
        speckles = 0.10 * (at.generator.random(at.across.shape) - 0.5)
        return colored(color, 1 + speckles + 0.06 * noise(at.generator, at.across, at.up, 0.3))

    return Material(paint, 20.0)


def rug(color: Color, border: Color, motif: Color) -> Material:
    """Return a rug with a border and diamonds."""

    def paint(at: Spots) -> np.ndarray:
        edge = edge_distance(at)
        cell = 0.45
        x, y = at.across / cell % 1 - 0.5, at.up / cell % 1 - 0.5
        painted = either(np.abs(x) + np.abs(y) < 0.3, motif, color)
        return either((edge < 0.16) & (edge > 0.05), border, painted)

    return Material(paint, 28.0)


def wood(color: Color) -> Material:
    """Return wood with a vertical grain."""

    def paint(at: Spots) -> np.ndarray:
        return colored(color, 1 + 0.12 * noise(at.generator, at.across, at.up * 0.12, 0.05))

    return Material(paint, 20.0)


def foliage(color: Color) -> Material:
    """Return leaves."""

    def paint(at: Spots) -> np.ndarray:
        patches = noise(at.generator, at.across, at.up, 0.07)
        return colored(color, 0.75 + 0.6 * patches)

    return Material(paint, _FINE)


def lamp(color: Color) -> Material:
    """Return a lamp that is on."""

    def paint(at: Spots) -> np.ndarray:
        return np.broadcast_to(np.array(color), (*at.across.shape, 3))

    return Material(paint, _ROUGH, glows=True)
