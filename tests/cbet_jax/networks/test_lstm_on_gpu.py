"""The GPU's form of the LSTM's gradient, compared with the CPU's."""

from functools import partial
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.networks import lstm, lstm_on_gpu
from cbet_jax.networks.lstm import Carry, unroll
from tests.support.families import slow

AGENTS, UNITS = 3, 4
STEPS = 2 * lstm_on_gpu.STEPS_A_TURN + 1  # whole turns, and a rest


def gradients(platform, factors, arguments):
    projected, first, weights, initial, cotangents = arguments
    function = partial(unroll, factors=factors)
    with patch.object(lstm, "_on_cpu", lambda: platform == "cpu"):
        value, back = jax.vjp(lambda p, w, i: function(p, first, w, i), projected, weights, initial)
        return value, back(cotangents)


def drawn(seeds):
    draw = lambda number, *shape: jax.random.normal(jax.random.key(number), (seeds, *shape))  # noqa: E731
    state = Carry(draw(2, AGENTS, UNITS), draw(3, AGENTS, UNITS))
    first = jax.random.bernoulli(jax.random.key(4), 0.3, (seeds, STEPS, AGENTS))
    cotangents = (
        draw(5, STEPS, AGENTS, UNITS),
        Carry(draw(6, AGENTS, UNITS), draw(7, AGENTS, UNITS)),
    )
    return draw(0, STEPS, AGENTS, 4 * UNITS), first, draw(1, UNITS, 4 * UNITS), state, cotangents


@pytest.mark.parametrize(("factors", "within"), [("float32", 2e-5), slow("bfloat16", 5e-2)])
def test_both_platforms_have_the_same_values_and_gradients(factors, within):
    arguments = drawn(seeds=2)
    cpu, gpu = (
        jax.jit(jax.vmap(partial(gradients, platform, factors)))(arguments)
        for platform in ("cpu", "gpu")
    )
    for ours, theirs in zip(jax.tree.leaves(gpu), jax.tree.leaves(cpu), strict=True):
        distance = np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)
        assert ours.dtype == jnp.float32
        assert distance < within


def test_one_step_is_a_sequence_too():
    one = jax.tree.map(lambda leaf: leaf[:1], drawn(seeds=2)[0][0])
    first, state = jnp.zeros((1, AGENTS), bool), Carry(*[jnp.ones((AGENTS, UNITS))] * 2)
    weights = jnp.ones((UNITS, 4 * UNITS))
    arguments = one, first, weights, state, (jnp.ones((1, AGENTS, UNITS)), state)
    cpu, gpu = (
        jax.jit(partial(gradients, platform, "float32"))(arguments) for platform in ("cpu", "gpu")
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), gpu, cpu)
