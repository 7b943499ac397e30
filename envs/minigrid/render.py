"""Draw one gridworld, as MiniGrid does: the whole grid, or the agent's view."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, UInt8

from envs.minigrid import cells as c
from envs.minigrid import views
from envs.minigrid.export import state_of, without_margin
from envs.minigrid.level import DIRECTIONS, UP
from envs.minigrid.tiles import FACING_RIGHT, tiles

SPRITE_SIZE = 32  # pixels of a tile

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
    drawn = tiles(tile_size)[lit.astype(int), cells]  # [rows, columns, tile_size, tile_size, 3]
    x, y = agent
    drawn[y, x] = tiles(tile_size)[FACING_RIGHT + direction, cells[y, x]]
    rows, columns = cells.shape
    return drawn.swapaxes(1, 2).reshape(rows * tile_size, columns * tile_size, 3)
