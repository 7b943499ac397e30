"""What a policy may see instead of the 7x7 view: other sizes, the whole grid, or pixels.

They are those of MiniGrid's wrappers: `ViewSizeWrapper`, `FullyObsWrapper`,
`RGBImgPartialObsWrapper` (`rgb`) and `RGBImgObsWrapper` (`full-rgb`), and of its environments'
options `agent_view_size` and `see_through_walls`. Counts go on reading the 7x7 view and panorama.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, UInt8

from envs.errors import UnsupportedEnvironment
from envs.minigrid import cells as c
from envs.minigrid import views
from envs.minigrid.generators import Generator
from envs.minigrid.level import DIRECTIONS, MARGIN, UP
from envs.minigrid.rules import State
from envs.minigrid.tiles import FACING_RIGHT, tiles

EGOCENTRIC, FULL, RGB, FULL_RGB = VIEWS = ("egocentric", "full", "rgb", "full-rgb")
LARGEST_VIEW = 31  # cells along a side
TILE_SIZE = 8  # pixels, as in MiniGrid's wrappers
BRIGHTEST = AGENT = c.TYPE_AGENT  # colours and states have smaller numbers


class Observer(NamedTuple):
    """Shows `N` worlds to their policies."""

    shape: tuple[int, int, int]
    see: Callable[[State], UInt8[Array, "N rows columns 3"]]  # of states [N, ...]
    brightest: int  # the largest number


def observer_of(
    generators: Sequence[Generator],
    *,
    view: str = EGOCENTRIC,
    view_size: int = views.VIEW_SIZE,
    see_through_walls: bool = False,
    grid: tuple[int, int] | None = None,
) -> Observer | None:
    """Return what shows environments to policies (None: `views.egocentric` does).

    Args:
        generators: the environments.
        view: one of `VIEWS`.
        view_size: width and height of the agent's view in cells, an odd number from 3 to 31.
        see_through_walls: whether the agent sees what walls and closed doors hide.
        grid: width and height of a full view (None: of the largest grid); smaller grids have walls
            around them.

    Raises:
        ValueError: a view is unknown, or a size or option has no meaning.
        UnsupportedEnvironment: an environment's grid is larger than `grid`.
    """
    if view not in VIEWS:
        raise ValueError(f"view must be one of {', '.join(VIEWS)}, not {view!r}")
    if view_size not in range(3, LARGEST_VIEW + 1, 2):
        raise ValueError(f"view_size must be odd and in 3..{LARGEST_VIEW}, not {view_size!r}")
    usual = view_size == views.VIEW_SIZE and not see_through_walls
    width, height = grid or largest_grid(generators)
    for each in generators if view in (FULL, FULL_RGB) else ():
        if each.width > width or each.height > height:
            why = f"its grid of {each.width} x {each.height} cells is larger than the {width} x"
            raise UnsupportedEnvironment(each.name, f"{why} {height} of the full view")
    if view == FULL:
        if not usual:
            raise ValueError("a full view has no view_size, and shows what is behind walls anyway")
        return Observer((width, height, 3), jax.vmap(partial(grid_codes, width, height)), BRIGHTEST)
    look = partial(views.look_around_batch, size=view_size, see_through_walls=see_through_walls)
    if view == EGOCENTRIC:
        see = lambda states: jnp.moveaxis(views.egocentric(states, look(states)), -1, 0)  # noqa: E731
        return None if usual else Observer((view_size, view_size, 3), see, BRIGHTEST)

    def picture(states: State) -> UInt8[Array, "N rows columns 3"]:
        seen = jnp.moveaxis(views.ahead(states, look(states)), -1, 0).swapaxes(1, 2)
        if view == RGB:
            return jax.vmap(_draw_view)(seen)
        return jax.vmap(partial(_draw_grid, width, height))(states, seen)

    rows, columns = (height, width) if view == FULL_RGB else (view_size, view_size)
    return Observer((rows * TILE_SIZE, columns * TILE_SIZE, 3), picture, 255)


def largest_grid(generators: Sequence[Generator]) -> tuple[int, int]:
    """Return the width and height that fit the grid of any environment."""
    return max(g.width for g in generators), max(g.height for g in generators)


def grid_codes(width: int, height: int, state: State) -> UInt8[Array, "width height 3"]:
    """Return the encoded grid with the agent's place and direction."""
    level, zero = state.level, jnp.uint8(0)
    x, y = level.agent_position
    agent = jnp.stack([zero + AGENT, zero + c.RED, level.agent_direction.astype(jnp.uint8)])
    return c.encode(_grid(width, height, state)).swapaxes(0, 1).at[x, y].set(agent)


def _draw_view(seen: UInt8[Array, "y x"]) -> UInt8[Array, "rows columns 3"]:
    """Draw the agent's view; it faces up, and the carried object lies under it."""
    return _draw(seen, seen != c.HIDDEN, (len(seen) - 1, len(seen) // 2), UP)


def _draw_grid(
    width: int, height: int, state: State, seen: UInt8[Array, "y x"]
) -> UInt8[Array, "rows columns 3"]:
    """Draw the grid, brighter where the agent sees it."""
    level, size = state.level, len(seen)
    x, y = level.agent_position
    right, down = jnp.array(DIRECTIONS)[level.agent_direction]
    aside = jnp.arange(size, dtype=jnp.int32)[None] - size // 2
    forward = jnp.arange(size, dtype=jnp.int32)[::-1, None]
    column, row = x + forward * right - aside * down, y + forward * down + aside * right
    inside = (column >= 0) & (row >= 0) & (column < level.size[0]) & (row < level.size[1])
    row = jnp.where(inside & (seen != c.HIDDEN), row, height)  # dropped
    lit = jnp.zeros((height, width), bool).at[row, column].set(True, mode="drop")
    return _draw(_grid(width, height, state), lit, (y, x), level.agent_direction)


def _draw(
    cells: UInt8[Array, "y x"],
    lit: Bool[Array, "y x"],
    place: tuple[Array | int, Array | int],
    direction: Array | int,
) -> UInt8[Array, "rows columns 3"]:
    looks = lit.astype(jnp.int32).at[place].set(FACING_RIGHT + direction)
    rows, columns = (side * TILE_SIZE for side in cells.shape)
    return jnp.asarray(tiles(TILE_SIZE))[looks, cells].swapaxes(1, 2).reshape(rows, columns, 3)


def _grid(width: int, height: int, state: State) -> UInt8[Array, "y x"]:
    cells = jnp.pad(state.level.cells, ((0, height), (0, width)), constant_values=c.WALL)
    return cells[MARGIN : MARGIN + height, MARGIN : MARGIN + width]
