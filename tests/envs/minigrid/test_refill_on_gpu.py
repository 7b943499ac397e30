"""Refilling as a GPU does it: the same levels, and one loop of unknown length."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.minigrid import pool, refill_on_gpu
from envs.minigrid.generators import GENERATORS
from envs.minigrid.pool import make_pool, take
from tests.support.numbered_levels import numbered

COUNT, CAPACITY = 4, 9
SMALL = (GENERATORS["MultiRoom-N2-S4"], numbered(1), numbered(2))
LARGE = tuple(GENERATORS[name] for name in ("MultiRoom-N6", "KeyCorridorS3R3", "MultiRoom-N4-S5"))


def empty_pool(generators):
    """Return a pool without levels: all its arrays begin at zero."""
    shapes = jax.eval_shape(lambda: make_pool(jax.random.key(0), generators, CAPACITY, COUNT))
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)


def filled(module, generators):
    """Refill an empty pool, then take levels and refill again, a few times."""

    @partial(jax.jit, static_argnums=2)
    def take_and_refill(pool, wanted, generators):
        for environment in range(len(generators)):
            worlds = jnp.full(CAPACITY, environment)
            pool, _ = take(pool, worlds, jnp.arange(CAPACITY) < wanted[environment])
        return module.refill(pool, jax.random.key(pool.made.sum()), generators, COUNT)

    pools = [empty_pool(generators)]
    for wanted in ([0, 0, 0], [9, 4, 1], [0, 9, 9]):
        pools.append(take_and_refill(pools[-1], jnp.array(wanted), generators))
    return pools


@pytest.mark.parametrize("generators", [SMALL, pytest.param(LARGE, marks=pytest.mark.slow)])
def test_the_levels_are_those_of_the_other_refill(generators):
    ours, theirs = (filled(module, generators) for module in (refill_on_gpu, pool))
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    assert (ours[1].made >= CAPACITY).any()
    assert (ours[-1].made > ours[1].made).all()


def test_at_most_one_loop_has_an_unknown_length():
    def loops(generators):
        refill = partial(refill_on_gpu.refill, generators=generators, count=COUNT)
        program = jax.make_jaxpr(refill)(empty_pool(generators), jax.random.key(0))
        return str(program).count("while[")

    assert loops(LARGE) == 1
    assert loops((GENERATORS["DoorKey-5x5"],)) == 0
