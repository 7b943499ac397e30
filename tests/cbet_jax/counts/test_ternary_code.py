"""Ternary codes against numpy, and counts of what they tell apart."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import CountSettings, TrainSettings
from cbet_jax.counts import ternary_code
from cbet_jax.counts.ternary_code import TernaryCode
from cbet_jax.intrinsic.cbet import cbet
from tests.support.moments import moment

KEY = jax.random.key(0)
NUMBERS = 12


def _settings(**changes):
    counts = CountSettings(reset_probability=0.0, capacity=64, keys="ternary", **changes)
    return TrainSettings(counts=counts)


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


def test_images_of_one_code_are_counted_as_one():
    """Numbers that large drive tanh to its ends: only their signs tell them apart."""
    method = cbet(_settings(), 3)
    _, memory = method.init(KEY, moment([0], [0]))
    counted = []
    for number in (100, 200, 100, 0):
        memory, signal = method.observe(memory, KEY, moment([number], [number]))
        counted.append((int(signal["states"][0]), int(signal["changes"][0])))
    assert counted == [(1, 1), (2, 2), (3, 1), (1, 2)]  # changes: +100, +100, -100, -100


@pytest.mark.parametrize(("shared", "codes"), [(False, 3), (True, 1)])
def test_each_actor_has_a_code_unless_they_count_together(shared, codes):
    method = cbet(_settings(shared=shared), 3)
    _, memory = method.init(KEY, moment([5, 5, 7]))
    drawn = np.asarray(memory["states"].keys.codes.projection)
    assert len(np.unique(drawn.reshape(codes, -1), axis=0)) == codes == len(drawn)
    _, signal = method.observe(memory, KEY, moment([5, 5, 7]))
    assert signal["states"].tolist() == ([1, 2, 3] if shared else [1, 1, 1])


@pytest.mark.parametrize("shared", [False, True])
def test_a_whole_sequence_is_counted_as_its_steps_are(shared):
    method = cbet(_settings(shared=shared), 3)
    numbers = np.random.default_rng(1).integers(0, 3, (2, 7, 3)) * 100
    first, *moments = [moment(*each) for each in numbers.swapaxes(0, 1).tolist()]
    steps = jax.tree.map(lambda *leaves: jnp.stack(leaves), *moments)
    keys = jax.random.split(KEY, len(moments))
    _, before = method.init(KEY, first)
    one_by_one = jax.lax.scan(lambda m, inputs: method.observe(m, *inputs), before, (keys, steps))
    memory, signal = method.observe_rollout(before, keys, steps)
    chex.assert_trees_all_equal((memory, signal), one_by_one)
    assert signal["changes"].max() > 1
