"""What patterns are made of: numbers that look random, smooth noise, distances, choices."""

import numpy as np

from envs.habitat.apartments.geometry import Color, Number, Spots


def shaded(color: Color, by: Number) -> Color:
    """Returns a darker (below 1) or lighter colour."""
    red, green, blue = (min(1.0, channel * by) for channel in color)
    return red, green, blue


def parts(at: Spots) -> tuple[np.ndarray, np.ndarray]:
    """Returns where in the face the spots are: 0..1 from left to right, and from low to high."""
    return at.across / at.size[0], at.up / at.size[1]


def edge_distance(at: Spots) -> np.ndarray:
    """Returns how far the spots are from the face's edge, in metres."""
    sides = np.minimum(at.across, at.size[0] - at.across)
    return np.minimum(sides, np.minimum(at.up, at.size[1] - at.up))


def either(
    condition: np.ndarray, yes: np.ndarray | Color | float, no: np.ndarray | Color | float
) -> np.ndarray:
    """Returns one colour where a condition is true, another elsewhere."""
    return np.where(condition[..., None], np.asarray(yes), np.asarray(no))


def colored(color: Color, tone: np.ndarray) -> np.ndarray:
    """Returns a colour in different tones, [...] to [..., 3]."""
    return np.array(color) * tone[..., None]


def random_of(index: np.ndarray) -> np.ndarray:
    """Returns a number in 0..1 for every integer, always the same one."""
    mixed = (np.asarray(index).astype(np.int64) * 2654435761 + 40503) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 2246822519) & 0xFFFFFFFF
    return (mixed ^ (mixed >> 13)) / 2.0**32


def noise(
    generator: np.random.Generator, across: np.ndarray, up: np.ndarray, cell: Number
) -> np.ndarray:
    """Returns smooth noise in -1..1 that changes over a length of `cell` metres."""
    x, y = across / cell, up / cell
    x, y = x - np.floor(x.min()), y - np.floor(y.min())
    column, row = x.astype(int), y.astype(int)
    lattice = generator.uniform(-1, 1, (row.max() + 2, column.max() + 2))
    x, y = x - column, y - row
    low = lattice[row, column] * (1 - x) + lattice[row, column + 1] * x
    high = lattice[row + 1, column] * (1 - x) + lattice[row + 1, column + 1] * x
    return low * (1 - y) + high * y
