"""A stand-in for the compiled program of a tiny run."""

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from cbet_jax.config import RunSettings
from cbet_jax.intrinsic.interface import Params
from cbet_jax.learner import LearnerState
from cbet_jax.program import Program
from cbet_jax.train import TrainState


def fake_program(
    settings: RunSettings, mesh: Mesh | None = None, bad_update: int | np.ndarray = -1
) -> Program:
    """Return a program that compiles at once: each seed is on a random walk.

    The loss of update `bad_update` is not finite: of all seeds, or of each its own.
    """
    bad_updates = tuple(np.ravel(bad_update).tolist())
    return _fake_program(settings.chunk, settings.train.iteration_frames, bad_updates)


@cache  # traced once
def _fake_program(chunk: int, frames: int, bad_updates: tuple[int, ...]) -> Program:
    def init(key: Array) -> TrainState:
        networks = Params({"network": jnp.zeros(3)}, {})
        walk = LearnerState(jnp.zeros(3), networks, policy_optimizer=(), intrinsic_optimizer={})
        nothing, zero = jnp.zeros(0), jnp.zeros((), jnp.int32)
        return TrainState(walk, actor=nothing, memory=(), key=key, iteration=zero)

    def iterate(state: TrainState, bad_update: Array) -> tuple[TrainState, dict[str, Array]]:
        key, step_key = jax.random.split(state.key)
        iteration = state.iteration + 1
        is_bad = iteration == bad_update  # one update in an iteration
        walk = state.learner.policy + jnp.where(is_bad, jnp.nan, jax.random.normal(step_key, (3,)))
        metrics = {
            "interactions": walk[0],
            "entropy": jnp.where(iteration % 3 == 0, jnp.nan, walk[1]),
            "first_bad_update": jnp.where(is_bad, 0.0, jnp.nan),
        }
        learner = state.learner._replace(policy=walk)
        return TrainState(learner, state.actor, (), key, iteration), metrics

    return program_of(init, iterate, chunk, frames, np.array(bad_updates))


def program_of(
    init: Callable[[Array], TrainState],
    iterate: Callable[..., tuple],
    chunk: int,
    frames: int,
    of_seeds: int | np.ndarray = 0,
) -> Program:
    """Return the program of seeds that each begin with `init` and repeat `iterate`.

    Args:
        init: returns the state of a seed.
        iterate: of a state, and of a number that is the seed's.
        chunk: iterations in a chunk.
        frames: of an iteration, for each seed.
        of_seeds: these numbers, one for each seed or one for all.
    """

    def advance(state: TrainState) -> tuple[TrainState, dict[str, Array]]:
        def of_seed(state: TrainState, own: Array) -> tuple[TrainState, dict[str, Array]]:
            return jax.lax.scan(lambda state, _: iterate(state, own), state, length=chunk)

        each = jnp.broadcast_to(of_seeds, (len(state.key),))
        state, metrics = jax.vmap(of_seed)(state, each)
        return state, {name: values.T for name, values in metrics.items()}

    return Program(
        init=jax.jit(jax.vmap(init)),
        advance=jax.jit(advance, donate_argnums=0),
        iterations_per_chunk=chunk,
        frames_per_iteration=frames,
    )
