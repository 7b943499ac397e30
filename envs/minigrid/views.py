"""MiniGrid's 7x7 egocentric view, and the panorama of four views.

A view covers the cells in front of the agent. The agent is at `view[3, 6]`; y falls ahead of
it and x rises to its right. Walls and closed doors hide what is behind them (MiniGrid's
`process_vis`), and the agent's own cell shows the carried object. The panorama (paper,
section 4, "change encoding") holds the views to the right, down, left and up from the agent's
position, whatever its direction.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, UInt, UInt8, UInt16

from envs.barrier import materialize, row_major
from envs.minigrid import cells as c
from envs.minigrid.export import state_of
from envs.minigrid.level import MARGIN
from envs.minigrid.rules import State

VIEW_SIZE = 7
AGENT_X, AGENT_Y = VIEW_SIZE // 2, VIEW_SIZE - 1  # the agent's cell in its view
REACH = VIEW_SIZE - 1  # how many cells ahead the agent sees

Rows = UInt[Array, "4 y *worlds"]  # one bit for each cell of a row


def look_around(state: State) -> UInt8[Array, "4 7 7"]:
    """Return the cells seen to the right, down, left and up; unseen cells are `HIDDEN`."""
    return _visible_cells(_window(state), state.carrying)


def look_around_batch(
    states: State, size: int = VIEW_SIZE, *, see_through_walls: bool = False
) -> UInt8[Array, "4 size size N"]:
    """Return `look_around` of `N` worlds, with the worlds as the last axis.

    That layout suits vector instructions: several times faster than `jax.vmap(look_around)`.

    Args:
        states: the worlds, arrays `[N, ...]`.
        size: width and height of a view in cells, an odd number.
        see_through_walls: whether nothing is hidden.
    """
    windows = materialize(jax.vmap(partial(_window, size=size))(states))
    windows = row_major(jnp.moveaxis(windows, 0, -1))
    return _visible_cells(windows, states.carrying, see_through_walls=see_through_walls)


def ahead(state: State, seen: UInt8[Array, "4 x y *worlds"]) -> UInt8[Array, "x y *worlds"]:
    """Return the cells seen in the agent's direction, taken from `seen`."""
    facing = [state.level.agent_direction == direction for direction in range(4)]
    return materialize(jnp.select(facing, list(seen)))


def egocentric(state: State, seen: UInt8[Array, "4 x y *worlds"]) -> UInt8[Array, "x y 3 *worlds"]:
    """Return MiniGrid's observation: the view in the agent's direction, taken from `seen`."""
    cells = ahead(state, seen)
    return jnp.stack([c.type_of(cells), c.color_of(cells), c.door_state_of(cells)], axis=2)


def panorama(state: Any) -> UInt8[Array, "4 7 7 3"]:
    """Return the views to the right, down, left and up from the agent's position.

    Args:
        state: a `rules.State`, or the `state` of a navix `Timestep`.
    """
    return c.encode(look_around(state_of(state)))


def panorama_code(seen: UInt8[Array, "4 7 7 *worlds"]) -> UInt16[Array, "196 *worlds"]:
    """Return the panorama with one integer per cell instead of three: equivalent for counts."""
    return c.encode_as_uint16(seen).reshape(-1, *seen.shape[3:])


def _visible_cells(
    window: UInt8[Array, "area area *worlds"],
    carrying: UInt8[Array, "*worlds"],
    *,
    see_through_walls: bool = False,
) -> UInt8[Array, "4 x y *worlds"]:
    """Return the visible cells of a window in each direction; others are `HIDDEN`."""
    seen = cells = materialize(_four_views(materialize(window)))
    if not see_through_walls:
        in_sight = materialize(_in_sight(materialize(_transparent_bits(cells))))
        seen = jnp.where(_unpack(in_sight), cells, c.HIDDEN)
    size = cells.shape[1]
    return materialize(seen.at[:, size // 2, size - 1].set(carrying))


def _window(state: State, size: int = VIEW_SIZE) -> UInt8[Array, "area area"]:
    """Return all cells within reach, row by row, with the agent in the middle."""
    reach, cells = size - 1, state.level.cells
    if beyond := max(reach - REACH, 0):
        cells = jnp.pad(cells, beyond, constant_values=c.WALL)
    x, y = state.level.agent_position + (MARGIN + beyond - reach)
    return jax.lax.dynamic_slice(cells, (y, x), (2 * reach + 1, 2 * reach + 1))


def _four_views(window: UInt8[Array, "area area *worlds"]) -> UInt8[Array, "4 x y *worlds"]:
    """Return all cells of the four views, seen or not, in MiniGrid's axis order."""
    reach = len(window) // 2
    side = slice(reach - reach // 2, reach + reach // 2 + 1)
    right = window[side, reach:][:, ::-1]
    down = window[reach:, side].swapaxes(0, 1)[::-1, ::-1]
    left = window[side, : reach + 1][::-1]
    up = window[: reach + 1, side].swapaxes(0, 1)
    return jnp.stack([right, down, left, up])


def _transparent_bits(cells: UInt8[Array, "4 x y *worlds"]) -> Rows:
    """Return the transparent cells of each row of a view as bits (bit x of row y)."""
    bits = _bits(cells.shape[1], cells.ndim)
    return jnp.where(c.is_opaque(cells), bits.dtype.type(0), bits).sum(1, dtype=bits.dtype)


def _in_sight(transparent: Rows) -> Rows:
    """Return the cells of each row that the agent sees, as bits (MiniGrid's `process_vis`).

    The rows are processed from the agent's own to the farthest. Sight passes sideways through
    transparent cells, and each transparent cell in sight shows the three cells ahead of it.
    """
    size = transparent.shape[1]
    all_bits = transparent.dtype.type((1 << size) - 1)
    sight = jnp.full_like(transparent[:, 0], 1 << size // 2)
    rows = []
    for y in reversed(range(size)):
        through = _fill_sideways(sight & transparent[:, y], transparent[:, y])
        beside = through << 1 | through >> 1
        rows.append((sight | beside) & all_bits)
        sight = materialize((through | beside) & all_bits)
    return jnp.stack(rows[::-1], axis=1)


def _fill_sideways(
    seeds: UInt[Array, "4 *worlds"], transparent: UInt[Array, "4 *worlds"]
) -> UInt[Array, "4 *worlds"]:
    """Extend `seeds` over runs of `transparent` bits, in doubling steps each way."""
    left, right, run_left, run_right = seeds, seeds, transparent, transparent
    for shift in (1, 2, 4, 8, 16)[: 3 if seeds.dtype == jnp.uint8 else 5]:
        left |= run_left & (left << shift)
        right |= run_right & (right >> shift)
        run_left &= run_left << shift
        run_right &= run_right >> shift
    return left | right


def _unpack(rows: Rows) -> Bool[Array, "4 x y *worlds"]:
    """Return bits as booleans, `bool[4, x, y]`."""
    return (rows[:, None] & _bits(rows.shape[1], rows.ndim + 1)) != 0


def _bits(size: int, ndim: int) -> UInt[Array, "..."]:
    """Return the bit of each x, along the second of `ndim` axes."""
    dtype = jnp.uint8 if size <= 8 else jnp.uint32
    bits = dtype(1) << jnp.arange(size, dtype=dtype)  # JAX batches no constant in a `cond`
    return bits.reshape(1, -1, *[1] * (ndim - 2))
