"""The barrier for the compiler."""

import chex
import jax
import jax.numpy as jnp

from cbet_jax.barrier import materialize


def test_a_tree_of_arrays_is_unchanged_and_behind_a_barrier():
    arrays = {"one": jnp.arange(3), "two": (jnp.ones(2),)}
    chex.assert_trees_all_equal(materialize(arrays), arrays)
    assert "optimization_barrier" in str(jax.make_jaxpr(materialize)(arrays))
