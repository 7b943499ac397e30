"""Draw one gridworld: the whole grid, or the agent's view.

The tiles are navix's sprites (MiniGrid's tiles of 32 pixels), read without importing navix.
Coloured floor, the agent and the highlighting are drawn after antialiasing, in MiniGrid before it.
A pixel may therefore differ by 1 of 255, or more where the agent and a carried object overlap.
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
from envs.minigrid.export import state_of, without_margin
from envs.minigrid.level import DIRECTIONS

SPRITE_SIZE = 32  # pixels
UP = 3  # the agent's direction in pictures of its view

_SPRITES = {
    c.KIND_EMPTY: "floor", c.KIND_WALL: "wall", c.KIND_FLOOR: "floor", c.KIND_GOAL: "goal",
    c.KIND_LAVA: "lava", c.KIND_OPEN: "door_open", c.KIND_CLOSED: "door_closed",
    c.KIND_LOCKED: "door_locked", c.KIND_KEY: "key", c.KIND_BALL: "ball", c.KIND_UNSEEN: "floor",
} | dict.fromkeys(range(c.KIND_BOX, c.NUM_KINDS), "box")  # fmt: skip
_ONE_COLOR = ("floor", "wall", "goal", "lava")
_FACING = ("east", "south", "west", "north")
# MiniGrid's `Floor` in its six colours: half as bright as other objects.
_FLOOR = ((127, 0, 0), (0, 127, 0), (0, 0, 127), (56, 19, 97), (127, 127, 0), (50, 50, 50))
_FLOOR_LINE = 1  # pixels of grid line above and to the left of a coloured floor
_RED = np.array((255, 0, 0))
_LIGHT = 0.3  # share of white mixed into visible cells (`highlight_img`)

Picture = UInt8[np.ndarray, "height width 3"]


def whole_grid(state: Any, tile_size: int = SPRITE_SIZE) -> Picture:
    """Draw the grid and the agent; visible cells are brighter.

    Args:
        state: a `rules.State`, or the `state` of a navix `Timestep`; not a batch.
        tile_size: width and height of a cell in pixels.

    Raises:
        ValueError: the state is a batch, or a tile has no pixels.
    """
    world = _one_world(state)
    grid = without_margin(world.level.cells, world.level.size)
    x, y = world.level.agent_position.tolist()
    return _draw_cells(grid, in_sight(world), (x, y), int(world.level.agent_direction), tile_size)


def agents_view(state: Any, tile_size: int = SPRITE_SIZE) -> Picture:
    """Draw the agent's 7x7 view, facing up, with unseen cells dark; arguments as in `whole_grid`.

    The carried object is drawn below the agent, in the cell in which the observation has it.
    """
    seen = seen_ahead(state)
    return _draw_cells(seen, seen != c.HIDDEN, (views.AGENT_X, views.AGENT_Y), UP, tile_size)


def seen_ahead(state: Any) -> UInt8[np.ndarray, "7 7"]:
    """Return the cells of the agent's view as drawn by `agents_view`, indexed `[y, x]`."""
    world = _one_world(state)
    return np.asarray(_look_around(world))[world.level.agent_direction].T


def in_sight(state: Any) -> Bool[np.ndarray, "height width"]:
    """Return the mask of the grid's cells that the agent sees."""
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
    world = jax.device_get(state_of(state))
    if world.level.cells.ndim != 2:
        raise ValueError("a picture shows one state, not a batch: select one with jax.tree.map")
    return world


def _draw_cells(
    cells: UInt8[np.ndarray, "rows columns"],
    lit: Bool[np.ndarray, "rows columns"],
    agent: tuple[int, int],
    direction: int,
    tile_size: int,
) -> Picture:
    if tile_size < 1:
        raise ValueError(f"a tile must have at least 1 pixel, not {tile_size}")
    tiles = _tiles(tile_size)[cells]  # [rows, columns, tile_size, tile_size, 3]
    x, y = agent
    cover = _agents(tile_size)[direction]
    tiles[y, x] = tiles[y, x] * (1 - cover) + _RED * cover
    tiles[lit] = tiles[lit] + _LIGHT * (255.0 - tiles[lit])
    rows, columns = cells.shape
    return tiles.swapaxes(1, 2).reshape(rows * tile_size, columns * tile_size, 3)


@cache
def _tiles(tile_size: int) -> UInt8[np.ndarray, "256 tile_size tile_size 3"]:
    """Return the tile of every byte; black for invalid bytes."""
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
    """Return the share of each pixel that the agent covers, for its four directions.

    navix's sprites of the agent include an empty cell with grey grid lines.
    """
    sprites = [_resized(_sprite(f"player_{facing}"), tile_size) for facing in _FACING]
    red, green, _ = np.moveaxis(np.stack(sprites).astype(np.float64), -1, 0)
    return ((red - green) / 255)[..., None]


def _sprite(name: str) -> Picture:
    """Read one of navix's sprites."""
    path = distribution("navix").locate_file(f"assets/sprites/{name}.png")
    with Image.open(str(path)) as image:
        return np.array(image.convert("RGB"))


def _resized(sprite: Picture, tile_size: int) -> UInt8[np.ndarray, "tile_size tile_size 3"]:
    """Resize a sprite by area averaging."""
    if tile_size == SPRITE_SIZE:
        return sprite
    return np.asarray(Image.fromarray(sprite).resize((tile_size, tile_size), Image.Resampling.BOX))
