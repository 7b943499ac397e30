"""What the agent sees: MiniGrid's 7x7 egocentric view, and the panorama of four of them.

A view lies in front of the agent: `view[x, y]` with the agent at `[3, 6]`, ahead of it
falling y, to its right rising x. Walls and closed doors hide what is behind them
(MiniGrid's `process_vis`). The carried object shows in the agent's own cell. The panorama
(paper, section 4, "change encoding") holds the four views an agent at that place would have
facing right, down, left and up, whichever way it really faces.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Layout, with_layout_constraint
from jaxtyping import Array, Bool, UInt8, UInt16

from envs.minigrid import cells as c
from envs.minigrid.level import MARGIN
from envs.minigrid.rules import State

VIEW_SIZE = 7
AGENT_X, AGENT_Y = VIEW_SIZE // 2, VIEW_SIZE - 1  # where the agent stands in its view
REACH = VIEW_SIZE - 1  # how far the agent sees
EVERY_BIT = np.uint8((1 << VIEW_SIZE) - 1)


def look_around(state: State) -> UInt8[Array, "4 7 7"]:
    """Returns the cells seen to the right, down, left and up; the others are `HIDDEN`."""
    return _look_out(_window(state), state.carrying)


def look_around_each(states: State) -> UInt8[Array, "4 7 7 N"]:
    """Returns what is seen around in each of `N` worlds, which stand on the last axis.

    There they lie side by side in memory, and every instruction works on many worlds at
    once: several times faster than `jax.vmap(look_around)`.
    """
    windows = jax.lax.optimization_barrier(jax.vmap(_window)(states))
    windows = with_layout_constraint(jnp.moveaxis(windows, 0, -1), Layout((0, 1, 2)))
    return _look_out(windows, states.carrying)


def egocentric(state: State, seen: UInt8[Array, "4 7 7 *worlds"]) -> UInt8[Array, "7 7 3 *worlds"]:
    """Returns MiniGrid's observation, picked from what is seen around."""
    facing = [state.level.agent_direction == direction for direction in range(4)]
    ahead = jax.lax.optimization_barrier(jnp.select(facing, list(seen)))
    return jnp.stack([c.type_of(ahead), c.color_of(ahead), c.door_state_of(ahead)], axis=2)


def panorama(state: State) -> UInt8[Array, "4 7 7 3"]:
    """Returns the views to the right, down, left and up from where the agent stands."""
    return c.encode(look_around(state))


def panorama_code(seen: UInt8[Array, "4 7 7 *worlds"]) -> UInt16[Array, "196 *worlds"]:
    """Returns the panorama with one integer a cell: as good for counting, a third the size."""
    return c.code(seen).reshape(-1, *seen.shape[3:])


def _look_out(
    window: UInt8[Array, "13 13 *worlds"], carrying: UInt8[Array, "*worlds"]
) -> UInt8[Array, "4 7 7 *worlds"]:
    """Returns what is seen of a window in each direction.

    The stages are kept apart by barriers: fused into one loop, XLA would compute the line
    of sight anew for every cell that it hides (seven times slower on a CPU).
    """
    apart = jax.lax.optimization_barrier
    cells = apart(_turn(apart(window)))
    in_sight = apart(_in_sight(apart(_clear_bits(cells))))
    seen = jnp.where(_unpack(in_sight), cells, c.HIDDEN)
    return apart(seen.at[:, AGENT_X, AGENT_Y].set(carrying))


def _window(state: State) -> UInt8[Array, "13 13"]:
    """Returns all cells within reach, row by row, with the agent in the middle."""
    x, y = state.level.agent_position + (MARGIN - REACH)
    return jax.lax.dynamic_slice(state.level.cells, (y, x), (2 * REACH + 1, 2 * REACH + 1))


def _turn(window: UInt8[Array, "13 13 *worlds"]) -> UInt8[Array, "4 7 7 *worlds"]:
    """Returns the cells of each of the four views, hidden or not, in MiniGrid's axis order."""
    side = slice(REACH - AGENT_X, REACH + AGENT_X + 1)
    right = window[side, REACH:][:, ::-1]
    down = window[REACH:, side].swapaxes(0, 1)[::-1, ::-1]
    left = window[side, : REACH + 1][::-1]
    up = window[: REACH + 1, side].swapaxes(0, 1)
    return jnp.stack([right, down, left, up])


def _clear_bits(cells: UInt8[Array, "4 7 7 *worlds"]) -> UInt8[Array, "4 7 *worlds"]:
    """Returns the see-through cells of each row of a view as bits (bit x of row y)."""
    bits = _bits(cells.ndim)
    return jnp.where(c.hides_behind(cells), jnp.uint8(0), bits).sum(1, dtype=jnp.uint8)


def _in_sight(clear: UInt8[Array, "4 7 *worlds"]) -> UInt8[Array, "4 7 *worlds"]:
    """Returns which cells of each row the agent sees, as bits (MiniGrid's `Grid.process_vis`).

    Row by row, from the agent's own to the farthest: sight spreads sideways through
    see-through cells, and each see-through cell in sight shows the three cells ahead of it.
    """
    sight = jnp.full_like(clear[:, 0], 1 << AGENT_X)
    rows = []
    for y in reversed(range(VIEW_SIZE)):
        through = _spread(sight & clear[:, y], clear[:, y])
        aside = through << 1 | through >> 1
        rows.append((sight | aside) & EVERY_BIT)
        sight = jax.lax.optimization_barrier((through | aside) & EVERY_BIT)
    return jnp.stack(rows[::-1], axis=1)


def _spread(
    seeds: UInt8[Array, "4 *worlds"], clear: UInt8[Array, "4 *worlds"]
) -> UInt8[Array, "4 *worlds"]:
    """Spreads `seeds` sideways over runs of `clear` bits, in three doubling steps each way."""
    left, right, run_left, run_right = seeds, seeds, clear, clear
    for shift in (1, 2, 4):
        left |= run_left & (left << shift)
        right |= run_right & (right >> shift)
        run_left &= run_left << shift
        run_right &= run_right >> shift
    return left | right


def _unpack(rows: UInt8[Array, "4 7 *worlds"]) -> Bool[Array, "4 7 7 *worlds"]:
    """Returns bits as booleans, `bool[4, x, y]`."""
    return (rows[:, None] & _bits(rows.ndim + 1)) != 0


def _bits(ndim: int) -> UInt8[Array, "..."]:
    """Returns the bit of each x, along the second of `ndim` axes."""
    bits = jnp.asarray(1 << np.arange(VIEW_SIZE), jnp.uint8)
    return bits.reshape(1, -1, *[1] * (ndim - 2))
