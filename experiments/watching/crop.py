"""Crop a grid to the cells that its level uses."""

from typing import Any, NamedTuple

import numpy as np

from envs.minigrid import cells as c
from envs.minigrid.export import without_margin


class Window(NamedTuple):
    """A rectangle of cells."""

    left: int
    top: int
    width: int
    height: int

    @property
    def columns(self) -> slice:
        """Its columns in the grid."""
        return slice(self.left, self.left + self.width)

    @property
    def rows(self) -> slice:
        """Its rows in the grid."""
        return slice(self.top, self.top + self.height)


def bounding_box(level: Any) -> Window:
    """Return the smallest window around the agent and all cells that are not empty.

    Args:
        level: a `Level` of numpy arrays.
    """
    used = without_margin(level.cells, level.size) != c.EMPTY
    x, y = level.agent_position
    used[y, x] = True
    rows, columns = np.flatnonzero(used.any(1)), np.flatnonzero(used.any(0))
    left, top = int(columns[0]), int(rows[0])
    return Window(left, top, int(columns[-1]) - left + 1, int(rows[-1]) - top + 1)


def enlarge(window: Window, width: int, height: int, level: Any) -> Window:
    """Return a window of this size around `window`, inside the level's grid."""
    grid_width, grid_height = level.size.tolist()
    left, top = min(window.left, grid_width - width), min(window.top, grid_height - height)
    return Window(left, top, width, height)
