"""What an iteration costs beside the network's products: in the worlds, and in the optimizer.

Operations are XLA's own count, bytes those of the records that must be read and written, both as
in `bounds`. How many fresh levels are drawn is not known before, and so not what that costs.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from cbet_jax.train import Trainer, init
from envs.minigrid import rules as dynamics
from envs.minigrid.world import Worlds
from experiments.benchmarks.bounds import COUNTING, Cost, moved, operations


class Costs(NamedTuple):
    """Of the parts of one iteration of one seed."""

    rules: Cost  # nothing where the worlds are no gridworlds: then they are with the views
    views: Cost  # and resets
    counts: Cost
    optimizer: Cost


def costs_of(trainer: Trainer) -> Costs:
    """Returns what the worlds and the optimizer cost in an iteration; compiles a step of each."""
    state = jax.eval_shape(partial(init, trainer), jax.random.key(0))
    worlds, memory, learner = state.actor.world, state.actor.memory, state.learner
    number, settings = trainer.world.num_worlds, trainer.settings
    actions = jax.ShapeDtypeStruct((number,), jnp.int32)
    _, seen = jax.eval_shape(trainer.world.step, worlds, actions)
    rules = Cost(0.0, 0.0)
    if isinstance(worlds, Worlds):
        computed = operations(jax.vmap(dynamics.step), worlds.states, actions)
        rules = Cost(computed, moved(worlds.states))
    stepped = operations(trainer.world.step, worlds, actions)
    counted = operations(trainer.intrinsic.observe, memory, state.key, seen)
    optimized = operations(partial(_optimize, trainer), learner.policy_optimizer, learner.policy)
    # The gradient is read; all else is read and written.
    weights = 1.5 * moved(learner.policy) + moved(learner.policy_optimizer)
    steps, updates = settings.rollouts * settings.unroll, settings.updates
    return Costs(
        rules=_times(steps, rules),
        views=_times(steps, Cost(stepped - rules.operations, moved(seen))),
        counts=_times(steps, Cost(counted, number * COUNTING)),
        optimizer=_times(updates, Cost(optimized, weights)),
    )


def _times(turns: int, cost: Cost) -> Cost:
    return Cost(turns * cost.operations, turns * cost.bytes)


def _optimize(trainer: Trainer, state: Any, params: Any) -> tuple[Any, Any]:
    """Steps by a gradient, for which the parameters stand."""
    steps, state = trainer.optimizer.update(params, state, params)
    return state, optax.apply_updates(params, steps)
