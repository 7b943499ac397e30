"""The loops of an LSTM layer's gradient for a GPU; tests compare them with those in `lstm`.

Kernel launches and memory traffic bound a GPU's speed. So a turn of these loops takes several steps
and writes them at once; arrays keep the layout of the products, where `jax.lax.scan` under
`jax.vmap` would transpose time to the front; and derivatives are computed inside the loop.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cbet_jax.networks.matmul import matmul_like, transpose, weights_gradient
from envs.barrier import row_major

STEPS_A_TURN = 4
PARTS = 6  # kept per step: four gates after their nonlinearities, CELL and HIDDEN
CELL, HIDDEN = 4, 5  # cell before the step (zero where an episode begins), hidden state after it

type States = tuple[Float[Array, "N units"], Float[Array, "N units"]]  # hidden, cell


def forward(
    projected: Float[Array, "T N gates"],
    keep: Float[Array, "T N 1"],
    weights: Float[Array, "units gates"],
    initial: States,
) -> tuple[States, Float[Array, "T N parts units"]]:
    """Return the last hidden state and cell, and the parts of every step.

    Args:
        projected: the inputs times the input weights, plus both biases.
        keep: zero where the state is zeroed before the step, else one.
        weights: recurrent weights, rounded.
        initial: the hidden state and the cell before the first step.
    """
    units = len(weights)

    def step(states: States, t: Array) -> tuple[States, Array]:
        hidden, before = (state * _at(keep, t) for state in states)
        gates = _at(projected, t) + matmul_like(hidden, weights)
        i, f, g, o = (gates[:, k * units : (k + 1) * units] for k in range(4))
        i, f, g, o = _sigmoid(i), _sigmoid(f), jnp.tanh(g), _sigmoid(o)
        cell = f * before + i * g
        hidden = o * jnp.tanh(cell)
        return (hidden, cell), jnp.stack([i, f, g, o, before, hidden], axis=1)

    steps, agents, _ = projected.shape
    kept = _uninitialized(projected, (steps, agents, PARTS, units), jnp.float32)
    return _loop(step, initial, kept)


def backward(
    trace: Float[Array, "T N parts units"],
    keep: Float[Array, "T N 1"],
    weights: Float[Array, "units gates"],
    initial_hidden: Float[Array, "N units"],
    gradients: tuple[Float[Array, "T N units"], States],
) -> tuple[Float[Array, "T N gates"], Float[Array, "units gates"], States]:
    """Return the gradients of the gates (rounded), of the weights and of the initial states.

    Args:
        trace: the parts that `forward` returned.
        keep: as in `forward`.
        weights: as in `forward`.
        initial_hidden: the hidden state before the first step.
        gradients: those of the hidden state after each step, and of the last states.
    """
    by_hidden, final = gradients
    units = len(weights)
    turned = transpose(weights)

    def step(states: States, t: Array) -> tuple[States, Array]:
        d_hidden, d_cell = states
        parts = _read(trace, t)
        i, f, g, o, before, _ = (parts[:, k] for k in range(PARTS))
        tanh_cell = jnp.tanh(f * before + i * g)
        d_hidden = d_hidden + _at(by_hidden, t)
        d_cell = d_cell + d_hidden * (o * (1 - tanh_cell * tanh_cell))
        by_gates = (
            d_cell * (g * i * (1 - i)),
            d_cell * (before * f * (1 - f)),
            d_cell * (i * (1 - g * g)),
            d_hidden * (tanh_cell * o * (1 - o)),
        )
        d_gates = jnp.concatenate(by_gates, axis=1).astype(weights.dtype)
        keep_t = _at(keep, t)
        return (matmul_like(d_gates, turned) * keep_t, d_cell * f * keep_t), d_gates

    kept = _uninitialized(trace, (*by_hidden.shape[:2], 4 * units), weights.dtype)
    by_initial, d_gates = _loop(step, final, kept, reverse=True)
    hidden = jnp.concatenate([initial_hidden[None], trace[:-1, :, HIDDEN]]) * keep
    factors = (array.reshape(-1, array.shape[-1]) for array in (hidden, d_gates))
    before, flat = (factor.astype(weights.dtype) for factor in factors)
    return d_gates, weights_gradient(before, flat), by_initial


def _loop(
    step: Callable[[States, Array], tuple[States, Array]],
    states: States,
    kept: Float[Array, "T N ..."],
    *,
    reverse: bool = False,
) -> tuple[States, Float[Array, "T N ..."]]:
    """Take a step at each time, several in each turn of a loop.

    Args:
        step: (states, time) -> (next states, values to keep).
        states: those before the first step.
        kept: the values of every step are written to it.
        reverse: whether to begin with the last step.

    Returns:
        The last states, and `kept`.
    """
    times = np.arange(len(kept))
    whole = len(times) // STEPS_A_TURN * STEPS_A_TURN
    order = slice(None, None, -1 if reverse else 1)

    def turn(carry: tuple[States, Array], now: Array) -> tuple[tuple[States, Array], None]:
        states, kept = carry
        found = []
        for index in range(len(now))[order]:
            states, values = step(states, now[index])
            found.append(values)
        # Row-major, or XLA would put the stack's axis first, and transpose it.
        return (states, _write(kept, row_major(jnp.stack(found[order])), now[0])), None

    def loop(carry: tuple[States, Array]) -> tuple[States, Array]:
        if not whole:
            return carry
        turns = jnp.asarray(times[:whole].reshape(-1, STEPS_A_TURN))
        return jax.lax.scan(turn, carry, turns, reverse=reverse)[0]

    def rest(carry: tuple[States, Array]) -> tuple[States, Array]:
        return turn(carry, jnp.asarray(times[whole:]))[0] if whole < len(times) else carry

    return loop(rest((states, kept))) if reverse else rest(loop((states, kept)))


def _sigmoid(x: Array) -> Array:
    return 0.5 * jnp.tanh(0.5 * x) + 0.5


def _at(array: Array, t: Array) -> Array:
    return jax.lax.dynamic_index_in_dim(array, t, keepdims=False)


# Under `jax.vmap` JAX would turn slices in a loop into gathers and scatters, and a scatter reads
# what it replaces. These three functions stay slices.


def _uninitialized(like: Array, shape: tuple[int, ...], kind: Any) -> Array:
    """Return an uninitialised array, batched under `jax.vmap` as `like` is."""

    @jax.custom_batching.custom_vmap
    def make(like: Array) -> Array:
        return jax.lax.empty(shape, kind)

    @make.def_vmap
    def _side_by_side(size: int, is_batched: list[bool], like: Array) -> tuple[Array, bool]:
        return jax.lax.empty((size, *shape), kind), True

    return make(like)


@jax.custom_batching.custom_vmap
def _read(array: Array, t: Array) -> Array:
    """Read at index `t` of the first axis."""
    return jax.lax.dynamic_index_in_dim(array, t, keepdims=False)


@_read.def_vmap
def _read_side_by_side(
    size: int, is_batched: list[bool], array: Array, t: Array
) -> tuple[Array, bool]:
    assert is_batched == [True, False]
    return jax.lax.dynamic_index_in_dim(array, t, 1, keepdims=False), True


@jax.custom_batching.custom_vmap
def _write(array: Array, values: Array, t: Array) -> Array:
    """Write along the first axis, from `t` on."""
    return jax.lax.dynamic_update_slice_in_dim(array, values, t, 0)


@_write.def_vmap
def _write_side_by_side(
    size: int, is_batched: list[bool], array: Array, values: Array, t: Array
) -> tuple[Array, bool]:
    assert is_batched == [True, True, False]
    return jax.lax.dynamic_update_slice_in_dim(array, values, t, 1), True
