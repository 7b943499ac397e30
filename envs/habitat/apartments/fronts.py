"""Materials for the fronts of furniture, windows and doors, by which rooms are recognised."""

import numpy as np

from envs.habitat.apartments.geometry import Color, Material, Spots
from envs.habitat.apartments.pattern import (
    colored,
    edge_distance,
    either,
    noise,
    parts,
    random_of,
)

_FINE = 40.0  # texels per metre


def fronts(color: Color, rows: int, columns: int, knob: Color = (0.25, 0.25, 0.25)) -> Material:
    """Return doors or drawers of furniture, each with a handle."""

    def paint(at: Spots) -> np.ndarray:
        x, y = at.across / at.size[0] * columns % 1, at.up / at.size[1] * rows % 1
        wide, high = at.size[0] / columns, at.size[1] / rows
        seam = np.minimum(np.minimum(x, 1 - x) * wide, np.minimum(y, 1 - y) * high) < 0.022
        flat = high < 0.6 * wide or rows > 1
        centre = (0.5, 0.6) if flat else (0.85, 0.5)
        half = (0.09, 0.022) if flat else (0.022, 0.12)
        handle = (np.abs(x - centre[0]) * wide < half[0]) & (np.abs(y - centre[1]) * high < half[1])
        painted = colored(color, 1 + 0.06 * noise(at.generator, at.across, at.up * 0.2, 0.06))
        painted = either(seam, painted * 0.55, painted)
        return either(handle, knob, painted)

    return Material(paint, _FINE)


def books(case: Color, shelves: int = 5) -> Material:
    """Return the front of a bookcase: shelves full of coloured books."""

    def paint(at: Spots) -> np.ndarray:
        y = at.up / at.size[1] * shelves
        shelf = np.floor(y).astype(int)
        book = np.floor(at.across / 0.055 + random_of(shelf) * 5).astype(int)
        chance = random_of(shelf * 71 + book * 13)
        hue = np.stack([random_of(book * 3 + shelf * 101 + k) for k in range(3)], axis=-1)
        painted = 0.15 + 0.7 * hue * (0.6 + 0.4 * chance)[..., None]
        empty = (y - shelf > 0.6 + 0.3 * chance) | (chance > 0.93)
        painted = either(empty, np.array(case) * 0.35, painted)
        edge = np.minimum(at.across, at.size[0] - at.across) < 0.035
        board = (y - shelf) * at.size[1] / shelves < 0.04
        return either(edge | board, np.array(case), painted)

    return Material(paint, _FINE)


def picture(seed: int) -> Material:
    """Return a framed painting: hills, a round sun, or squares."""

    def paint(at: Spots) -> np.ndarray:
        own = np.random.default_rng(seed)
        colors = own.uniform(0.1, 0.95, (5, 3))
        x, y = parts(at)
        if seed % 3 == 0:
            painted = np.broadcast_to(colors[0], (*x.shape, 3))
            for layer in range(1, 4):
                hill = 0.85 - 0.22 * layer + 0.1 * np.sin(own.uniform(2, 9) * x + own.uniform(0, 6))
                painted = either(y < hill, colors[layer], painted)
        elif seed % 3 == 1:
            sun = (x - own.uniform(0.3, 0.7)) ** 2 + (y - 0.6) ** 2 < 0.05
            painted = either(y < 0.4, colors[1], colors[0])
            painted = either(sun, colors[2], painted)
        else:
            cell = (np.floor(x * 3) + 3 * np.floor(y * 3)).astype(int)
            painted = own.uniform(0.05, 0.95, (16, 3))[np.clip(cell, 0, 15)]
        return either(edge_distance(at) < 0.045, 0.12 + 0.2 * colors[4], painted)

    return Material(paint, _FINE)


def window(sky: Color, ground: Color) -> Material:
    """Return the view through a window of four panes."""

    def paint(at: Spots) -> np.ndarray:
        x, y = parts(at)
        clouds = 0.1 * noise(at.generator, at.across, at.up * 2, 0.35)[..., None]
        view = np.array(sky) * (0.8 + 0.25 * y[..., None]) + clouds
        trees = y < 0.28 + 0.08 * np.sin(9 * x) + 0.05 * np.sin(23 * x)
        view = either(trees, ground, view)
        bar = (
            (edge_distance(at) < 0.06)
            | (np.abs(x - 0.5) * at.size[0] < 0.035)
            | (np.abs(y - 0.6) < 0.02)
        )
        return either(bar, (0.9, 0.9, 0.88), view)

    return Material(paint, 32.0, glows=True)


def screen(seed: int) -> Material:
    """Return the screen of a television or monitor that is on."""

    def paint(at: Spots) -> np.ndarray:
        x, y = parts(at)
        own = np.random.default_rng(seed)
        low, high = own.uniform(0.0, 0.5, 3), own.uniform(0.2, 0.8, 3)
        view = low + (high - low) * y[..., None]
        row = np.floor(y * 8)
        lines = (row % 2 == 1) & (x > 0.12) & (x < 0.4 + 0.4 * random_of(row))
        view = either(lines, view + 0.25, view)
        return either(edge_distance(at) < 0.03, 0.03, view)

    return Material(paint, _FINE, glows=True)


def rings(color: Color, dark: Color, count: tuple[int, int]) -> Material:
    """Return circles on a plate: the rings of a cooker, the door of a washing machine."""

    def paint(at: Spots) -> np.ndarray:
        wide, high = at.size[0] / count[0], at.size[1] / count[1]
        x, y = at.across % wide - wide / 2, at.up % high - high / 2
        radius = np.hypot(x, y) / min(wide, high)
        painted = either(radius < 0.36, dark, color)
        return either(radius < 0.2, np.array(dark) * 1.6 + 0.05, painted)

    return Material(paint, _FINE)


def panelled(color: Color) -> Material:
    """Return a door: two panels, and a handle at each edge."""

    def paint(at: Spots) -> np.ndarray:
        x, y = parts(at)
        inset = np.minimum(np.minimum(x - 0.14, 0.86 - x) * at.size[0], (0.38 - np.abs(y - 0.5)))
        inset = np.minimum(inset, np.abs(y - 0.5) - 0.04)
        painted = either(inset > 0.03, np.array(color) * 0.9, np.array(color))
        painted = either(np.abs(inset) < 0.03, np.array(color) * 0.68, painted)
        handle = (np.abs(y - 0.5) * at.size[1] < 0.035) & (np.minimum(x, 1 - x) < 0.13)
        return either(handle, (0.75, 0.7, 0.45), painted)

    return Material(paint, 32.0)
