"""Crop a grid to the cells that its level uses."""

from typing import Any

from scipy import ndimage

from envs.minigrid import cells as c
from envs.minigrid.export import without_margin

type Window = tuple[slice, slice]  # rows and columns of a grid


def bounding_box(level: Any) -> Window:
    """Return the smallest window around the agent and all cells that are not empty.

    Args:
        level: a `Level` of numpy arrays.
    """
    used = without_margin(level.cells, level.size) != c.EMPTY
    x, y = level.agent_position
    used[y, x] = True
    ((rows, columns),) = ndimage.find_objects(used.astype(int))
    return rows, columns


def enlarge(window: Window, height: int, width: int, level: Any) -> Window:
    """Return a window of this size around `window`, inside the level's grid if that is as large."""
    rows, columns = window
    right, bottom = (level.size - (width, height)).clip(0).tolist()
    top, left = min(rows.start, bottom), min(columns.start, right)
    return slice(top, top + height), slice(left, left + width)
