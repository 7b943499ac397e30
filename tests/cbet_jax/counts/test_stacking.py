"""A stack of a few numbers, as it is written for a CPU and for a GPU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.counts.stacking import _selected, stack

NUMBERS = jnp.arange(12, dtype=jnp.uint32).reshape(3, 4)


def test_numbers_are_stacked_side_by_side_or_alone():
    np.testing.assert_array_equal(stack(*NUMBERS[:, 0]), NUMBERS[:, 0])
    np.testing.assert_array_equal(jax.vmap(stack)(*NUMBERS), NUMBERS.T)
    some = jax.vmap(stack, in_axes=(0, None, 0))(NUMBERS[0], NUMBERS[1, 0], NUMBERS[2])
    np.testing.assert_array_equal(some, NUMBERS.at[1].set(NUMBERS[1, 0]).T)


def test_a_gpu_selects_the_same_numbers():
    np.testing.assert_array_equal(_selected(*NUMBERS), NUMBERS)


@pytest.mark.parametrize(("platform", "concatenates"), [("cpu", True), ("cuda", False)])
def test_each_platform_has_its_own_form(platform, concatenates):
    lowered = jax.jit(jax.vmap(stack)).trace(*NUMBERS).lower(lowering_platforms=(platform,))
    assert ("stablehlo.concatenate" in lowered.as_text()) == concatenates
