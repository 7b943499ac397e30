"""Whether two backends' numbers agree."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

from cbet_jax.program import seed_keys
from cbet_jax.train import init, make_trainer
from experiments.benchmarks import gpu_report_agreement as agreement
from experiments.common.presets import PRESETS
from tests.support.worlds import single_env


class State(NamedTuple):
    """What is compared of two backends."""

    params: jax.Array
    count: jax.Array
    key: jax.Array


def test_other_numbers_are_noticed():
    begun = State(jnp.zeros(2), jnp.zeros(3, jnp.int32), jax.random.key(0))
    after = begun._replace(params=jnp.array([1.0, -1.0]), count=jnp.arange(3))
    metrics = {"loss": jnp.float32(2.0), "success": jnp.float32(jnp.nan)}
    compare = partial(agreement.compare, begun, (after, metrics), bounds=agreement.BOUNDS)
    assert compare((after, metrics)).agrees
    assert compare((after, metrics)).integers == 3 + 2
    near = after._replace(params=after.params * 1.0005)
    assert compare((near, metrics)).update == pytest.approx(5e-4, rel=0.01)
    assert compare((near, metrics)).agrees
    assert not compare((after._replace(params=after.params * 1.1), metrics)).agrees
    other = compare((after._replace(count=jnp.array([0, 1, 3])), metrics))
    assert not other.agrees
    assert other.different == ("count",)
    assert not compare((after, metrics | {"loss": jnp.float32(2.1)})).agrees
    assert not compare((after, metrics | {"success": jnp.float32(0.0)})).agrees


@pytest.mark.slow
def test_products_without_the_rounding_are_noticed():
    """What differs least from the CPU's bfloat16: the same computed in float32."""
    smoke = PRESETS["smoke"].train
    world = single_env("Unlock", smoke.worlds)
    rounding = replace(smoke, network=replace(smoke.network, factors="bfloat16"))
    trainers = [make_trainer(settings, world) for settings in (rounding, smoke)]
    begin = jax.jit(jax.vmap(partial(init, trainers[0])))
    state = begin(seed_keys(2))
    played = jax.jit(jax.vmap(partial(agreement._trajectories, trainers[0])))(state)
    results = [
        jax.jit(jax.vmap(partial(agreement._follow, trainer)))(state, played)
        for trainer in trainers
    ]
    compare = partial(agreement.compare, state, bounds=agreement.ROUNDED)
    assert compare(results[0], results[0]).agrees
    assert not compare(*results).agrees
