"""MiniGrid's tiles, pixel for pixel (its `Grid.render_tile`), as a table by a cell's byte."""

import math
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Bool, UInt8

from envs.minigrid import cells as c

UNSEEN, SEEN, FACING_RIGHT = range(3)  # looks of a cell; then the agent's other directions
LOOKS = FACING_RIGHT + 4
SUBDIVISIONS = 3  # drawn larger by this factor, then averaged
RGB = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (112, 39, 195), (255, 255, 0), (100, 100, 100))
PAINTS = {"lines": (100, 100, 100), "black": (0, 0, 0), "lava": (255, 128, 0)}
OWN = {"own": 1.0, "half": 0.5, "dim": 0.45}  # share of a thing's own colour
AGENT = np.array((255, 0, 0), np.uint8)
LIGHT = 0.3  # share of white mixed into visible cells

# Paint and numbers of each part, in the order of drawing. Three numbers are a circle (x, y,
# radius), four a box (left, right, top, bottom), five a line (x, y, x, y, radius); 0 to 1 from left
# to right and top to bottom.
WAVES = [
    f"black .1 .{y} .3 .{y + 1}, black .3 .{y + 1} .5 .{y}, black .5 .{y} .7 .{y + 1}, "
    f"black .7 .{y + 1} .9 .{y}".replace(",", " .03,")
    + " .03"
    for y in (3, 5, 7)
]
GRID_LINES = "lines 0 .031 0 1, lines 0 1 0 .031"
THINGS = {
    c.KIND_EMPTY: GRID_LINES,
    c.KIND_WALL: "own 0 1 0 1",
    c.KIND_GOAL: "own 0 1 0 1",
    c.KIND_FLOOR: f"{GRID_LINES}, half .031 1 .031 1",
    c.KIND_LAVA: ", ".join(["lava 0 1 0 1", *WAVES]),
    c.KIND_OPEN: f"{GRID_LINES}, own .88 1 0 1, black .92 .96 .04 .96",
    c.KIND_CLOSED: "own 0 1 0 1, black .04 .96 .04 .96, own .08 .92 .08 .92, "
    "black .12 .88 .12 .88, own .75 .5 .08",
    c.KIND_LOCKED: "own 0 1 0 1, dim .06 .94 .06 .94, own .52 .75 .5 .56",
    c.KIND_KEY: f"{GRID_LINES}, own .5 .63 .31 .88, own .38 .5 .59 .66, own .38 .5 .81 .88, "
    "own .56 .28 .19, black .56 .28 .064",
    c.KIND_BALL: f"{GRID_LINES}, own .5 .5 .31",
    c.KIND_BOX: f"{GRID_LINES}, own .12 .88 .12 .88, black .18 .82 .18 .82, own .16 .84 .47 .53",
}


@cache
def tiles(size: int) -> UInt8[np.ndarray, "looks 256 size size 3"]:
    """Return the tile of every byte: unseen, seen, and with the agent, for its directions.

    A full box looks like an empty one. Tiles of invalid bytes are black.
    """
    pixels, colors = size * SUBDIVISIONS, np.arange(len(RGB))
    y, x = (np.mgrid[:pixels, :pixels] + 0.5) / pixels
    agents = [_agent(x, y, turns) for turns in range(LOOKS - FACING_RIGHT)]
    found = np.zeros((LOOKS, 256, size, size, 3), np.uint8)
    for kind, parts in THINGS.items():
        for color, rgb in enumerate(RGB):
            image = np.zeros((pixels, pixels, 3), np.uint8)
            for paint, *numbers in map(str.split, parts.split(", ")):
                own = np.array(rgb) * OWN.get(paint, 0)
                image[_inside(x, y, *map(float, numbers))] = PAINTS.get(paint, own)
            found[:, c.cell(kind, color)] = _looks(image, agents)
    for kind in range(c.KIND_BOX + 1, c.NUM_KINDS):
        found[:, c.cell(kind, c.RED) + colors] = found[:, c.cell(c.KIND_BOX, c.RED) + colors]
    found[:, c.HIDDEN] = found[:, c.EMPTY]
    return found


def _looks(image: UInt8[np.ndarray, "pixels pixels 3"], agents: Any) -> Any:
    """Return all looks of a thing; numbers may have fractions, which bytes cut off."""
    seen = np.stack([image, *(np.where(agent[..., None], AGENT, image) for agent in agents)])
    lighter = (seen + LIGHT * (255 - seen)).clip(0, 255).astype(np.uint8)
    parts = (len(image) // SUBDIVISIONS, SUBDIVISIONS) * 2
    return np.stack([image, *lighter]).reshape(LOOKS, *parts, 3).mean(axis=4).mean(axis=2)


def _inside(x: np.ndarray, y: np.ndarray, *numbers: float) -> Bool[np.ndarray, "pixels pixels"]:
    """Return which pixels a part covers."""
    if len(numbers) == 4:
        left, right, top, bottom = numbers
        return (x >= left) & (x <= right) & (y >= top) & (y <= bottom)
    *ends, radius = numbers
    first, last = np.array(ends[:2], np.float32), np.array(ends[2:], np.float32)
    if len(numbers) == 3:
        return (x - ends[0]) ** 2 + (y - ends[1]) ** 2 <= radius * radius
    along = (last - first) / (length := np.linalg.norm(last - first))
    x, y = x - first[0], y - first[1]
    nearest = np.clip(x * along[0] + y * along[1], 0, length)
    return np.hypot(x - nearest * along[0], y - nearest * along[1]) <= radius


def _agent(x: np.ndarray, y: np.ndarray, turns: int) -> Bool[np.ndarray, "pixels pixels"]:
    """Return which pixels the agent's triangle covers, turned from facing right by quarters."""
    a, b, corner = np.array(((0.12, 0.19), (0.87, 0.50), (0.12, 0.81)), np.float32)
    cos, sin = math.cos(-0.5 * math.pi * turns), math.sin(-0.5 * math.pi * turns)
    right = 0.5 + (x - 0.5) * cos - (y - 0.5) * sin - a[0]
    down = 0.5 + (y - 0.5) * cos + (x - 0.5) * sin - a[1]
    v0, v1 = corner - a, b - a
    d00, d01, d11 = np.dot(v0, v0), np.dot(v0, v1), np.dot(v1, v1)
    d02, d12 = v0[0] * right + v0[1] * down, v1[0] * right + v1[1] * down
    scale = 1 / (d00 * d11 - d01 * d01)
    u, v = (d11 * d02 - d01 * d12) * scale, (d00 * d12 - d01 * d02) * scale
    return (u >= 0) & (v >= 0) & (u + v < 1)
