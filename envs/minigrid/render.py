"""Pictures of one gridworld: the whole grid, and what its agent sees.

The tiles are navix's sprites, which are MiniGrid's own tiles of 32 pixels; they are read from
navix's files, without importing it. What navix draws by itself is drawn here as MiniGrid does:
coloured floor, the agent on top of what it stands on, and light on the cells that it sees.
MiniGrid does so before it smooths edges: a pixel of its picture of the same moment may differ
by 1 of 255, and by some more where the agent's edge crosses that of a carried object.
"""

from functools import cache
from importlib.metadata import distribution
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, UInt8
from PIL import Image

from envs.minigrid import cells as c
from envs.minigrid import views
from envs.minigrid.export import trim, world_of
from envs.minigrid.level import DIRECTIONS

SPRITE_SIZE = 32  # pixels
UP = 3  # the direction that the agent faces in its own view

_SPRITES = {
    c.KIND_EMPTY: "floor", c.KIND_WALL: "wall", c.KIND_FLOOR: "floor", c.KIND_GOAL: "goal",
    c.KIND_LAVA: "lava", c.KIND_OPEN: "door_open", c.KIND_CLOSED: "door_closed",
    c.KIND_LOCKED: "door_locked", c.KIND_KEY: "key", c.KIND_BALL: "ball", c.KIND_UNSEEN: "floor",
} | dict.fromkeys(range(c.KIND_BOX, c.NUM_KINDS), "box")  # fmt: skip
_ONE_COLOR = ("floor", "wall", "goal", "lava")
_FACING = ("east", "south", "west", "north")
# MiniGrid's `Floor` in its six colours, which are half as bright as all other things.
_FLOOR = ((127, 0, 0), (0, 127, 0), (0, 0, 127), (56, 19, 97), (127, 127, 0), (50, 50, 50))
_FLOOR_LINE = 1  # pixels of grid line that show above and to the left of a coloured floor
_RED = np.array((255, 0, 0))
_LIGHT = 0.3  # of white, mixed into what the agent sees (MiniGrid's `highlight_img`)

Picture = UInt8[np.ndarray, "height width 3"]


def whole_grid(state: Any, tile_size: int = SPRITE_SIZE) -> Picture:
    """Draws the grid and the agent, the cells that it sees in a brighter light.

    Args:
        state: a `dynamics.State`, or the state of a navix `Timestep` of ours; not a batch.
        tile_size: width and height of a cell in pixels.

    Raises:
        ValueError: the state is a batch, or a tile has no pixels.
    """
    world = _one_world(state)
    grid = trim(world.level.cells, world.level.size)
    x, y = world.level.agent_position.tolist()
    return _draw(grid, in_sight(world), (x, y), int(world.level.agent_direction), tile_size)


def agents_view(state: Any, tile_size: int = SPRITE_SIZE) -> Picture:
    """Draws the 7x7 view, ahead of the agent up; what it cannot see is dark.

    The carried object lies under the agent, as it does in the numbers that the agent gets.

    Args:
        state: a `dynamics.State`, or the state of a navix `Timestep` of ours; not a batch.
        tile_size: width and height of a cell in pixels.

    Raises:
        ValueError: the state is a batch, or a tile has no pixels.
    """
    seen = seen_ahead(state)
    return _draw(seen, seen != c.HIDDEN, (views.AGENT_X, views.AGENT_Y), UP, tile_size)


def seen_ahead(state: Any) -> UInt8[np.ndarray, "7 7"]:
    """Returns the cells of the agent's view as they are drawn, row by row (`[y, x]`).

    Raises:
        ValueError: the state is a batch.
    """
    world = _one_world(state)
    return np.asarray(_look_around(world))[world.level.agent_direction].T


def in_sight(state: Any) -> Bool[np.ndarray, "height width"]:
    """Returns which cells of the grid the agent sees.

    Raises:
        ValueError: the state is a batch.
    """
    world = _one_world(state)
    rows, columns = np.nonzero(seen_ahead(world) != c.HIDDEN)
    ahead, aside = views.AGENT_Y - rows, columns - views.AGENT_X
    (right, down), (x, y) = DIRECTIONS[world.level.agent_direction], world.level.agent_position
    seen_x, seen_y = x + ahead * right - aside * down, y + ahead * down + aside * right
    width, height = world.level.size.tolist()
    inside = (seen_x >= 0) & (seen_x < width) & (seen_y >= 0) & (seen_y < height)
    seen = np.zeros((height, width), bool)
    seen[seen_y[inside], seen_x[inside]] = True
    return seen


_look_around = jax.jit(views.look_around)


def _one_world(state: Any) -> Any:  # a `State` of numpy arrays
    world = jax.device_get(world_of(state))
    if world.level.cells.ndim != 2:
        raise ValueError("a picture shows one state, not a batch: pick one with jax.tree.map")
    return world


def _draw(
    cells: UInt8[np.ndarray, "rows columns"],
    lit: Bool[np.ndarray, "rows columns"],
    agent: tuple[int, int],
    direction: int,
    tile_size: int,
) -> Picture:
    if tile_size < 1:
        raise ValueError(f"a tile has at least 1 pixel, not {tile_size}")
    tiles = _tiles(tile_size)[cells]  # [rows, columns, tile_size, tile_size, 3]
    x, y = agent
    cover = _agents(tile_size)[direction]
    tiles[y, x] = tiles[y, x] * (1 - cover) + _RED * cover
    tiles[lit] = tiles[lit] + _LIGHT * (255.0 - tiles[lit])
    rows, columns = cells.shape
    return tiles.swapaxes(1, 2).reshape(rows * tile_size, columns * tile_size, 3)


@cache
def _tiles(tile_size: int) -> UInt8[np.ndarray, "256 tile_size tile_size 3"]:
    """Returns the tile of every byte; black where no cell has that byte."""
    tiles = np.zeros((256, tile_size, tile_size, 3), np.uint8)
    for kind, name in _SPRITES.items():
        for color, color_name in enumerate(c.COLORS):
            sprite = _sprite(name if name in _ONE_COLOR else f"{name}_{color_name}")
            if kind == c.KIND_FLOOR:
                sprite[_FLOOR_LINE:, _FLOOR_LINE:] = _FLOOR[color]
            tiles[c.cell(kind, color)] = _resized(sprite, tile_size)
    return tiles


@cache
def _agents(tile_size: int) -> Float[np.ndarray, "4 tile_size tile_size 1"]:
    """Returns how much of each pixel the agent covers, for each direction that it may face.

    navix's sprites of the agent include an empty cell, whose grid lines are grey.
    """
    sprites = [_resized(_sprite(f"player_{facing}"), tile_size) for facing in _FACING]
    red, green, _ = np.moveaxis(np.stack(sprites).astype(np.float64), -1, 0)
    return ((red - green) / 255)[..., None]


def _sprite(name: str) -> Picture:
    """Reads one of navix's sprites."""
    # Not through `importlib.util.find_spec`: it would use up the hook of `registration.py`.
    path = distribution("navix").locate_file(f"assets/sprites/{name}.png")
    with Image.open(str(path)) as image:
        return np.array(image.convert("RGB"))


def _resized(sprite: Picture, tile_size: int) -> UInt8[np.ndarray, "tile_size tile_size 3"]:
    """Returns the sprite at another size, each pixel the mean of the area that it covers."""
    if tile_size == SPRITE_SIZE:
        return sprite
    return np.asarray(Image.fromarray(sprite).resize((tile_size, tile_size), Image.Resampling.BOX))
