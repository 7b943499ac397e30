"""Ternary codes against numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.counts import ternary_code
from cbet_jax.counts.ternary_code import TernaryCode

KEY = jax.random.key(0)
NUMBERS = 12


def _code(offsets, draws=200):
    keys = jax.random.split(KEY, draws)
    return jax.vmap(lambda key: ternary_code.make_ternary_code(key, NUMBERS, offsets))(keys)


@pytest.mark.parametrize("offsets", ["uniform", "normal"])
def test_codes_are_those_of_the_formula(offsets):
    code = ternary_code.make_ternary_code(KEY, NUMBERS, offsets)
    images = np.random.default_rng(0).integers(-255, 256, (50, NUMBERS)) * ([[1e-3], [1.0]] * 25)
    projection, w = np.asarray(code.projection, float), np.asarray(code.offsets, float)
    g = np.tanh(images @ projection.T) + w
    expected = np.where(g > 0.5, 1, np.where(g < -0.5, -1, 0))
    found = jax.vmap(lambda image: ternary_code.encode(code, image))(
        jnp.asarray(images, jnp.float32)
    )
    unclear = np.abs(np.abs(g) - 0.5) < 1e-4
    np.testing.assert_array_equal(np.where(unclear, 0, found), np.where(unclear, 0, expected))
    assert set(np.unique(found)) == {-1, 0, 1}
    assert found.shape == (50, 128)


def test_the_offsets_are_uniform_or_normal():
    for offsets, deviation in (("uniform", 1 / np.sqrt(3)), ("normal", 1.0)):
        w = np.asarray(_code(offsets).offsets)
        np.testing.assert_allclose([w.mean(), w.std()], [0, deviation], atol=0.03)
        assert (np.abs(w).max() <= 1) == (offsets == "uniform")


def test_the_projection_is_standard_normal():
    projection = np.asarray(_code("uniform").projection)
    np.testing.assert_allclose([projection.mean(), projection.std()], [0, 1], atol=0.01)


def test_codes_by_hand():
    code = TernaryCode(jnp.array([[1.0, 0.0], [0.0, -1.0], [0.0, 0.0]]), jnp.array([0.0, 0.2, 0.5]))
    assert ternary_code.encode(code, jnp.array([9, 9])).tolist() == [1, -1, 0]
    assert ternary_code.encode(code, jnp.array([0, -9])).tolist() == [0, 1, 0]
