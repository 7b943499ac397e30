"""The recurrence of one LSTM layer, unrolled over time, with its gradient written out.

The layer itself, with its parameters and input product, is `policy_network.LSTMLayer`.

Automatic differentiation would add each step's share of the recurrent weights' gradient to an array
of their size at every step, and keep ten arrays a step for the backward pass. Here the forward and
the backward loop each hold one matrix product and as little else as the recurrence allows. The
derivatives of the nonlinearities are taken for all steps at once between the loops, and the
gradient of the weights is one matrix product over all steps after them.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from cbet_jax.config import Factors
from cbet_jax.networks import lstm_on_gpu
from cbet_jax.networks.matmul import loop_matmul, round_factor, weights_gradient

INPUT, FORGET, CELL, OUTPUT = range(4)  # PyTorch's order of the gates


class Carry(NamedTuple):
    """The state of one layer."""

    hidden: Float[Array, "N units"]
    cell: Float[Array, "N units"]


class Trace(NamedTuple):
    """What the forward loop keeps of every step for the backward pass."""

    gates: Float[Array, "T N 4 units"]  # after their nonlinearities
    hidden: Float[Array, "T N units"]
    cell: Float[Array, "T N units"]


@partial(jax.custom_vjp, nondiff_argnums=(4,))
def unroll(
    projected: Float[Array, "T N gates"],
    first: Bool[Array, "T N"],
    weights: Float[Array, "units 4*units"],
    initial: Carry,
    factors: Factors = "float32",
) -> tuple[Float[Array, "T N units"], Carry]:
    """Unroll one LSTM layer over `T` steps (Hochreiter and Schmidhuber, 1997).

    Args:
        projected: the inputs times the input weights, plus both biases.
        first: where true, the state is zeroed before the step.
        weights: recurrent weights; gates in the order input, forget, cell, output.
        initial: the state before the first step.
        factors: precision of the factors of the recurrent products.

    Returns:
        The hidden state after each step, and the last state.
    """
    weights = round_factor(weights, factors)
    final, trace = _forward(projected, first, weights, initial)
    return trace.hidden, final


def _forward(projected: Array, first: Array, weights: Array, initial: Carry) -> tuple[Carry, Trace]:
    steps, agents, _ = projected.shape
    recur = loop_matmul(weights, agents, steps)

    def step(carry: Carry, inputs: tuple[Array, Array]) -> tuple[Carry, Trace]:
        projected_t, keep_t = inputs
        gates = _activate(projected_t + recur(carry.hidden * keep_t))
        cell = gates[:, FORGET] * (carry.cell * keep_t) + gates[:, INPUT] * gates[:, CELL]
        hidden = gates[:, OUTPUT] * jnp.tanh(cell)
        return Carry(hidden, cell), Trace(gates, hidden, cell)

    return jax.lax.scan(step, initial, (projected, _keep(first)))


def _on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def _keep(first: Bool[Array, "T N"]) -> Float[Array, "T N 1"]:
    """Return the factor that zeroes the state where an episode begins."""
    return jnp.where(first, 0.0, 1.0)[..., None]


def _activate(gates: Float[Array, "N gates"]) -> Float[Array, "N 4 units"]:
    """Apply the sigmoids and the tanh as one function: sigmoid(x) = (1 + tanh(x / 2)) / 2."""
    gates = gates.reshape(gates.shape[0], 4, -1)
    scale = jnp.where(jnp.arange(4) == CELL, 1.0, 0.5)[:, None]
    return scale * jnp.tanh(scale * gates) + (1 - scale)


def _unroll_forward(
    projected: Array, first: Array, weights: Array, initial: Carry, factors: Factors
) -> Any:
    weights = round_factor(weights, factors)
    if not _on_cpu():
        states, kept = lstm_on_gpu.forward(
            projected, _keep(first), weights, (initial.hidden, initial.cell)
        )
        hidden = kept[:, :, lstm_on_gpu.HIDDEN]
        return (hidden, Carry(*states)), (kept, first, weights, initial)
    final, trace = _forward(projected, first, weights, initial)
    return (trace.hidden, final), (trace, first, weights, initial)


def _unroll_backward(factors: Factors, residuals: Any, gradients: Any) -> Any:
    trace, first, weights, initial = residuals
    hidden_gradient, final_gradient = gradients
    keep = _keep(first)
    if not _on_cpu():
        gradients = hidden_gradient, (final_gradient.hidden, final_gradient.cell)
        by_gates, by_weights, by_states = lstm_on_gpu.backward(
            trace, keep, weights, initial.hidden, gradients
        )
        return by_gates.astype(jnp.float32), None, by_weights, Carry(*by_states)
    before = Carry(
        hidden=jnp.concatenate([initial.hidden[None], trace.hidden[:-1]]) * keep,
        cell=jnp.concatenate([initial.cell[None], trace.cell[:-1]]) * keep,
    )
    steps, agents, _ = trace.hidden.shape
    recur_back = loop_matmul(weights, agents, steps, transposed=True)

    def step(carry: Carry, inputs: tuple[Array, ...]) -> tuple[Carry, Array]:
        gradient_t, gates_derivative_t, cell_derivative_t, keep_t, forget_t = inputs
        d_hidden = carry.hidden + gradient_t
        d_cell = carry.cell + d_hidden * cell_derivative_t
        by_gate = jnp.stack([d_cell, d_cell, d_cell, d_hidden], axis=1)
        d_gates = (gates_derivative_t * by_gate).reshape(d_cell.shape[0], -1)
        return Carry(recur_back(d_gates) * keep_t, d_cell * forget_t), d_gates

    derivatives = _derivatives(trace, before.cell)
    inputs = (hidden_gradient, *derivatives, keep, trace.gates[:, :, FORGET] * keep)
    initial_gradient, d_gates = jax.lax.scan(step, final_gradient, inputs, reverse=True)
    return d_gates, None, _weights_gradient(before.hidden, d_gates, factors), initial_gradient


def _weights_gradient(
    hidden: Float[Array, "T N units"], d_gates: Float[Array, "T N gates"], factors: Factors
) -> Float[Array, "units gates"]:
    """Return the gradient of the recurrent weights: one product over all steps and agents."""
    hidden = round_factor(hidden.reshape(-1, hidden.shape[-1]), factors)
    return weights_gradient(hidden, round_factor(d_gates.reshape(-1, d_gates.shape[-1]), factors))


def _derivatives(
    trace: Trace, cell_before: Float[Array, "T N units"]
) -> tuple[Float[Array, "T N 4 units"], Float[Array, "T N units"]]:
    """Return the derivatives of each step, for all steps at once.

    Returns:
        The derivative of the new cell (for the output gate: of the hidden state) by each gate
        before its nonlinearity, and of the hidden state by the new cell.
    """
    i, f, g, o = jnp.moveaxis(trace.gates, 2, 0)
    tanh_cell = jnp.tanh(trace.cell)
    by_gates = jnp.stack(
        [g * i * (1 - i), cell_before * f * (1 - f), i * (1 - g * g), tanh_cell * o * (1 - o)],
        axis=2,
    )
    return by_gates, o * (1 - tanh_cell * tanh_cell)


unroll.defvjp(_unroll_forward, _unroll_backward)
