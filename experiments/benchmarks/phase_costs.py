"""What an iteration costs beside the network's products: in the worlds and in the optimizer.

Operations are XLA's own count, bytes those of the records that must be read and written, as in
`bounds`. The cost of fresh levels is left out: how many are drawn is not known in advance.
"""

from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import optax

from cbet_jax.intrinsic.types import Experience
from cbet_jax.train import Trainer, init
from envs.minigrid.rules import step as play_by_rules
from envs.minigrid.world import Worlds
from experiments.benchmarks.bounds import COUNTING_BYTES, Cost, moved_bytes, operations


class Costs(NamedTuple):
    """The costs of the parts of one iteration of one seed."""

    rules: Cost  # zero unless the worlds are gridworlds: others' rules are counted with the views
    views: Cost  # and resets
    counts: Cost
    optimizer: Cost


def costs_of(trainer: Trainer) -> Costs:
    """Return what the worlds and the optimizer cost in an iteration; compile a step of each."""
    state = jax.eval_shape(partial(init, trainer), jax.random.key(0))
    worlds, memory, learner = state.actor.world, state.actor.memory, state.learner
    number, settings = trainer.world.num_worlds, trainer.settings
    actions = jax.ShapeDtypeStruct((number,), jnp.int32)
    _, seen = jax.eval_shape(trainer.world.step, worlds, actions)
    rules = Cost(0.0, 0.0)
    if isinstance(worlds, Worlds):
        computed = operations(jax.vmap(play_by_rules), worlds.states, actions)
        rules = Cost(computed, moved_bytes(worlds.states))
    stepped = operations(trainer.world.step, worlds, actions)
    experience = Experience(seen.view, cast(Any, actions), seen)
    networks = state.learner.intrinsic
    counted = operations(trainer.intrinsic.observe, networks, memory, state.key, experience)
    optimized = operations(partial(_optimize, trainer), learner.policy_optimizer, learner.policy)
    # The gradient is only read; all else is read and written.
    weights = 1.5 * moved_bytes(learner.policy) + moved_bytes(learner.policy_optimizer)
    steps, updates = settings.rollouts * settings.unroll, settings.updates
    return Costs(
        rules=_times(steps, rules),
        views=_times(steps, Cost(stepped - rules.operations, moved_bytes(seen))),
        counts=_times(steps, Cost(counted, number * COUNTING_BYTES)),
        optimizer=_times(updates, Cost(optimized, weights)),
    )


def _times(turns: int, cost: Cost) -> Cost:
    return Cost(turns * cost.operations, turns * cost.bytes)


def _optimize(trainer: Trainer, state: Any, params: Any) -> tuple[Any, Any]:
    """Take a step of the optimizer; the parameters stand in for a gradient."""
    steps, state = trainer.optimizers.policy.update(params, state, params)
    return state, optax.apply_updates(params, steps)
