"""Building blocks of patterns: pseudo-random numbers, smooth noise, distances and choices."""

import numpy as np

from envs.habitat.apartments.geometry import Color, Number, Spots


def pick_color(generator: np.random.Generator, colors: tuple[Color, ...]) -> Color:
    """Return a random one of `colors`."""
    return colors[int(generator.integers(len(colors)))]


def shaded(color: Color, by: Number) -> Color:
    """Return a darker (`by` below 1) or lighter colour."""
    red, green, blue = (min(1.0, channel * by) for channel in color)
    return red, green, blue


def parts(at: Spots) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of points in a face: 0..1 from left to right, and from bottom to top."""
    return at.across / at.size[0], at.up / at.size[1]


def edge_distance(at: Spots) -> np.ndarray:
    """Return the distances of points from the edge of the face, in metres."""
    sides = np.minimum(at.across, at.size[0] - at.across)
    return np.minimum(sides, np.minimum(at.up, at.size[1] - at.up))


def either(
    condition: np.ndarray, yes: np.ndarray | Color | float, no: np.ndarray | Color | float
) -> np.ndarray:
    """Return one colour where a condition holds, and another elsewhere."""
    return np.where(condition[..., None], np.asarray(yes), np.asarray(no))


def colored(color: Color, tone: np.ndarray) -> np.ndarray:
    """Return a colour in different tones, [...] to [..., 3]."""
    return np.array(color) * tone[..., None]


def random_of(index: np.ndarray) -> np.ndarray:
    """Return a pseudo-random number in 0..1 for every integer, always the same one."""
    mixed = (np.asarray(index).astype(np.int64) * 2654435761 + 40503) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 2246822519) & 0xFFFFFFFF
    return (mixed ^ (mixed >> 13)) / 2.0**32


def noise(
    generator: np.random.Generator, across: np.ndarray, up: np.ndarray, cell: Number
) -> np.ndarray:
    """Return smooth noise in -1..1.

    Args:
        generator: random generator of the noise.
        across: horizontal coordinates in metres.
        up: vertical coordinates in metres.
        cell: length in metres over which the noise changes.
    """
    x, y = across / cell, up / cell
    x, y = x - np.floor(x.min()), y - np.floor(y.min())
    column, row = x.astype(int), y.astype(int)
    lattice = generator.uniform(-1, 1, (row.max() + 2, column.max() + 2))
    x, y = x - column, y - row
    low = lattice[row, column] * (1 - x) + lattice[row, column + 1] * x
    high = lattice[row + 1, column] * (1 - x) + lattice[row + 1, column + 1] * x
    return low * (1 - y) + high * y
