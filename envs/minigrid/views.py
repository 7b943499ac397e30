"""MiniGrid's 7x7 egocentric view, and the panorama of four views.

A view covers the cells in front of the agent. The agent is at `view[3, 6]`; y falls ahead of
it and x rises to its right. Walls and closed doors hide what is behind them (MiniGrid's
`process_vis`), and the agent's own cell shows the carried object. The panorama (paper,
section 4, "change encoding") holds the views to the right, down, left and up from the agent's
position, whatever its direction.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, UInt8, UInt16

from envs.barrier import materialize, row_major
from envs.minigrid import cells as c
from envs.minigrid.level import MARGIN
from envs.minigrid.rules import State

VIEW_SIZE = 7
AGENT_X, AGENT_Y = VIEW_SIZE // 2, VIEW_SIZE - 1  # the agent's cell in its view
REACH = VIEW_SIZE - 1  # how many cells ahead the agent sees
ALL_BITS = np.uint8((1 << VIEW_SIZE) - 1)


def look_around(state: State) -> UInt8[Array, "4 7 7"]:
    """Return the cells seen to the right, down, left and up; unseen cells are `HIDDEN`."""
    return _visible_cells(_window(state), state.carrying)


def look_around_batch(states: State) -> UInt8[Array, "4 7 7 N"]:
    """Return `look_around` of `N` worlds, with the worlds as the last axis.

    That layout suits vector instructions: several times faster than `jax.vmap(look_around)`.
    """
    windows = materialize(jax.vmap(_window)(states))
    return _visible_cells(row_major(jnp.moveaxis(windows, 0, -1)), states.carrying)


def egocentric(state: State, seen: UInt8[Array, "4 7 7 *worlds"]) -> UInt8[Array, "7 7 3 *worlds"]:
    """Return MiniGrid's observation: the view in the agent's direction, taken from `seen`."""
    facing = [state.level.agent_direction == direction for direction in range(4)]
    ahead = materialize(jnp.select(facing, list(seen)))
    return jnp.stack([c.type_of(ahead), c.color_of(ahead), c.door_state_of(ahead)], axis=2)


def panorama(state: State) -> UInt8[Array, "4 7 7 3"]:
    """Return the views to the right, down, left and up from the agent's position."""
    return c.encode(look_around(state))


def panorama_code(seen: UInt8[Array, "4 7 7 *worlds"]) -> UInt16[Array, "196 *worlds"]:
    """Return the panorama with one integer per cell: equivalent for counts, a third of the size."""
    return c.encode_as_uint16(seen).reshape(-1, *seen.shape[3:])


def _visible_cells(
    window: UInt8[Array, "13 13 *worlds"], carrying: UInt8[Array, "*worlds"]
) -> UInt8[Array, "4 7 7 *worlds"]:
    """Return the visible cells of a window in each direction; others are `HIDDEN`."""
    cells = materialize(_four_views(materialize(window)))
    in_sight = materialize(_in_sight(materialize(_transparent_bits(cells))))
    seen = jnp.where(_unpack(in_sight), cells, c.HIDDEN)
    return materialize(seen.at[:, AGENT_X, AGENT_Y].set(carrying))


def _window(state: State) -> UInt8[Array, "13 13"]:
    """Return all cells within reach, row by row, with the agent in the middle."""
    x, y = state.level.agent_position + (MARGIN - REACH)
    return jax.lax.dynamic_slice(state.level.cells, (y, x), (2 * REACH + 1, 2 * REACH + 1))


def _four_views(window: UInt8[Array, "13 13 *worlds"]) -> UInt8[Array, "4 7 7 *worlds"]:
    """Return all cells of the four views, seen or not, in MiniGrid's axis order."""
    side = slice(REACH - AGENT_X, REACH + AGENT_X + 1)
    right = window[side, REACH:][:, ::-1]
    down = window[REACH:, side].swapaxes(0, 1)[::-1, ::-1]
    left = window[side, : REACH + 1][::-1]
    up = window[: REACH + 1, side].swapaxes(0, 1)
    return jnp.stack([right, down, left, up])


def _transparent_bits(cells: UInt8[Array, "4 7 7 *worlds"]) -> UInt8[Array, "4 7 *worlds"]:
    """Return the transparent cells of each row of a view as bits (bit x of row y)."""
    bits = _bits(cells.ndim)
    return jnp.where(c.is_opaque(cells), jnp.uint8(0), bits).sum(1, dtype=jnp.uint8)


def _in_sight(transparent: UInt8[Array, "4 7 *worlds"]) -> UInt8[Array, "4 7 *worlds"]:
    """Return the cells of each row that the agent sees, as bits (MiniGrid's `process_vis`).

    The rows are processed from the agent's own to the farthest. Sight passes sideways through
    transparent cells, and each transparent cell in sight shows the three cells ahead of it.
    """
    sight = jnp.full_like(transparent[:, 0], 1 << AGENT_X)
    rows = []
    for y in reversed(range(VIEW_SIZE)):
        through = _fill_sideways(sight & transparent[:, y], transparent[:, y])
        beside = through << 1 | through >> 1
        rows.append((sight | beside) & ALL_BITS)
        sight = materialize((through | beside) & ALL_BITS)
    return jnp.stack(rows[::-1], axis=1)


def _fill_sideways(
    seeds: UInt8[Array, "4 *worlds"], transparent: UInt8[Array, "4 *worlds"]
) -> UInt8[Array, "4 *worlds"]:
    """Extend `seeds` over runs of `transparent` bits, in three doubling steps each way."""
    left, right, run_left, run_right = seeds, seeds, transparent, transparent
    for shift in (1, 2, 4):
        left |= run_left & (left << shift)
        right |= run_right & (right >> shift)
        run_left &= run_left << shift
        run_right &= run_right >> shift
    return left | right


def _unpack(rows: UInt8[Array, "4 7 *worlds"]) -> Bool[Array, "4 7 7 *worlds"]:
    """Return bits as booleans, `bool[4, x, y]`."""
    return (rows[:, None] & _bits(rows.ndim + 1)) != 0


def _bits(ndim: int) -> UInt8[Array, "..."]:
    """Return the bit of each x, along the second of `ndim` axes."""
    bits = jnp.uint8(1) << jnp.arange(VIEW_SIZE, dtype=jnp.uint8)  # no constant: see `_see`
    return bits.reshape(1, -1, *[1] * (ndim - 2))
