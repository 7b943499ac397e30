"""The unrolled LSTM against the textbook's, and its gradient against the automatic one."""

from operator import itemgetter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.networks.lstm import Carry, unroll

STEPS = 4
SIZES = {"small": (3, 5), "large": (16, 512)}  # agents and units; large weights take another path


def _textbook_lstm(projected, first, weights, initial):
    hidden, cell, outputs = initial.hidden, initial.cell, []
    for t in range(projected.shape[0]):
        hidden, cell = (jnp.where(first[t][:, None], 0, x) for x in (hidden, cell))
        i, f, g, o = jnp.split(projected[t] + hidden @ weights, 4, axis=-1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        outputs.append(hidden)
    return jnp.stack(outputs), Carry(hidden, cell)


def _outputs_and_gradients(lstm):
    def scalar(projected, weights, initial, first):
        outputs, final = lstm(projected, first, weights, initial)
        mix = jax.random.normal(jax.random.key(9), outputs.shape)
        return (outputs * mix).sum() + (final.hidden * final.cell).sum(), (outputs, final)

    def compute(projected, first, weights, initial):
        by_all = jax.value_and_grad(scalar, argnums=(0, 1, 2), has_aux=True)
        (_, results), gradients = by_all(projected, weights, initial, first)
        return results, gradients

    return compute


@pytest.fixture(scope="module", params=SIZES)
def computed(request):
    """What each LSTM returns, and its gradients: ours, the textbook's, and ours of two seeds."""
    agents, units = SIZES[request.param]
    random = np.random.default_rng(0)
    normal = lambda *shape: random.standard_normal(shape, np.float32)  # noqa: E731
    projected = normal(STEPS, agents, 4 * units)
    weights = normal(units, 4 * units) / np.float32(np.sqrt(units))
    first = random.random((STEPS, agents)) < 0.3
    initial = Carry(*normal(2, agents, units))
    inputs = projected, first, weights, initial
    seeds = jax.tree.map(lambda x: np.stack([x, x[::-1]]), inputs)
    ours = jax.jit(_outputs_and_gradients(unroll))
    one_by_one = [ours(*jax.tree.map(itemgetter(seed), seeds)) for seed in range(2)]
    theirs = jax.jit(_outputs_and_gradients(_textbook_lstm))(*inputs)
    side_by_side = jax.jit(jax.vmap(_outputs_and_gradients(unroll)))(*seeds)
    return jax.device_get((one_by_one, theirs, side_by_side))


def _assert_close(ours, theirs, atol):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=atol), ours, theirs)


@pytest.mark.parametrize(("part", "atol"), [(0, 1e-5), (1, 1e-4)], ids=["outputs", "gradients"])
def test_it_is_the_textbooks_lstm_and_seeds_are_unrolled_side_by_side(computed, part, atol):
    """The gradient written out equals the automatic one."""
    one_by_one, theirs, side_by_side = computed
    _assert_close(one_by_one[0][part], theirs[part], atol)
    for seed, alone in enumerate(one_by_one):
        _assert_close(jax.tree.map(itemgetter(seed), side_by_side[part]), alone[part], atol)
