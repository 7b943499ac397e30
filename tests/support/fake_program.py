"""A stand-in for the compiled program of a tiny run."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh

from cbet_jax.config import RunSettings
from cbet_jax.train import Program


class FakeState(NamedTuple):
    """What the stand-in carries on: a random walk for each seed."""

    params: Array  # [seeds, 3]
    key: Array  # [seeds]
    iteration: Array  # [seeds]
    nothing: Array  # [seeds, 0]; orbax cannot store empty arrays


def fake_program(settings: RunSettings, mesh: Mesh | None = None, bad_update: int = -1) -> Program:
    """Returns a program that compiles at once; the loss of update `bad_update` is not finite."""

    def init(key: Array) -> FakeState:
        return FakeState(jnp.zeros(3), key, jnp.zeros((), jnp.int32), jnp.zeros(0))

    def iterate(state: FakeState, _: None) -> tuple[FakeState, dict[str, Array]]:
        key, step_key = jax.random.split(state.key)
        iteration = state.iteration + 1
        is_bad = iteration == bad_update  # one update in an iteration
        walk = state.params + jnp.where(is_bad, jnp.nan, jax.random.normal(step_key, (3,)))
        metrics = {
            "interactions": walk[0],
            "entropy": jnp.where(iteration % 3 == 0, jnp.nan, walk[1]),
            "first_bad_update": jnp.where(is_bad, 0.0, jnp.nan),
        }
        return FakeState(walk, key, iteration, state.nothing), metrics

    def advance(state: FakeState) -> tuple[FakeState, dict[str, Array]]:
        chunk = jax.vmap(lambda state: jax.lax.scan(iterate, state, length=settings.chunk))
        state, metrics = chunk(state)
        return state, {name: values.T for name, values in metrics.items()}

    return Program(
        init=jax.jit(jax.vmap(init)),
        advance=jax.jit(advance, donate_argnums=0),
        iterations_per_chunk=settings.chunk,
        frames_per_iteration=settings.train.iteration_frames,
    )
