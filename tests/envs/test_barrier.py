"""The barrier for the compiler."""

import chex
import jax
import jax.numpy as jnp

from envs.barrier import materialize


def lowered(*platforms: str) -> str:
    function = jax.jit(lambda x: materialize((x + 1, x * 2)))
    return function.trace(jnp.arange(3)).lower(lowering_platforms=platforms).as_text()


def test_a_tree_of_arrays_is_unchanged():
    arrays = {"one": jnp.arange(3), "two": (jnp.ones(2),), "none": ()}
    chex.assert_trees_all_equal(materialize(arrays), arrays)
    chex.assert_trees_all_equal(jax.jit(jax.vmap(materialize))(jnp.eye(2)), jnp.eye(2))
    assert materialize(()) == ()


def test_only_programs_for_a_cpu_have_a_barrier():
    assert "optimization_barrier" in lowered("cpu")
    assert "optimization_barrier" not in lowered("cuda")


def test_a_gradient_passes():
    assert jax.grad(lambda x: (materialize(x) ** 2).sum())(3.0) == 6.0
