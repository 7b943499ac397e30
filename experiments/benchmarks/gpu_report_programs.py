"""The compiled programs of the report's cases, and the states they start from."""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from cbet_jax.learner import LearnerState
from cbet_jax.program import make_program, seed_keys
from cbet_jax.train import Trainer, TrainState, init, learn, make_trainer, play
from cbet_jax.types import Trajectory
from experiments.benchmarks.gpu_report_cases import ACTING, LEARNING, TRAINING, Case, world_of

ONE_AT_A_TIME = threading.Lock()
ENDED = 0.01  # share of the made-up steps that end an episode


class CompiledCase(NamedTuple):
    """A program ready to be measured."""

    program: Any  # state -> (state, other results); donates the state
    begin: Callable[[], Any]  # makes the first state


@cache
def _first_moment(environments: tuple[str, ...], number: int) -> Any:
    """Return worlds at their first moment; drawing their levels takes long to compile."""
    return jax.jit(world_of(environments, number).init)(jax.random.key(1))


@cache
def _beginning(case: Case) -> Any:
    """Compile the function that makes every seed's first state; all begin in the same levels."""
    begun = _first_moment(case.environments, case.settings.worlds)
    trainer = _trainer(case)
    trainer = trainer._replace(world=replace(trainer.world, init=lambda _: begun))
    return jax.jit(jax.vmap(partial(init, trainer))).lower(seed_keys(case.seeds)).compile()


def _trainer(case: Case) -> Trainer:
    return make_trainer(case.settings, world_of(case.environments, case.settings.worlds))


def compile_case(case: Case) -> CompiledCase:
    """Compile a case's program; threads may compile several at a time."""
    trainer = _trainer(case)
    state = jax.eval_shape(jax.vmap(partial(init, trainer)), seed_keys(case.seeds))
    acting = _over_seeds(partial(_act, trainer), case.seeds)
    if case.part == TRAINING:
        program, given = _training(trainer, case), state
    elif case.part == ACTING:
        program, given = jax.jit(acting, donate_argnums=0), state
    else:
        _, trajectories = jax.eval_shape(acting, state)
        learning = _over_seeds(partial(_learn, trainer), case.seeds)
        program, given = jax.jit(learning, donate_argnums=0), (state.learner, trajectories)
    compiled = program.lower(given).compile()
    with ONE_AT_A_TIME:  # cases share first states: when one compiles them, others wait
        beginning = _beginning(case._replace(part=TRAINING))

    def begin() -> Any:
        state = beginning(seed_keys(case.seeds))
        return (state.learner, _made_up(given[1])) if case.part == LEARNING else state

    return CompiledCase(compiled, begin)


def _training(trainer: Trainer, case: Case) -> Any:
    return make_program(case.settings, trainer.world, case.seeds, iterations_per_chunk=1).advance


def _over_seeds(function: Callable[[Any], Any], seeds: int) -> Callable[[Any], Any]:
    if seeds > 1:
        return jax.vmap(function)
    return lambda states: jax.tree.map(
        lambda leaf: leaf[None], function(jax.tree.map(lambda leaf: leaf[0], states))
    )


def _act(trainer: Trainer, state: TrainState) -> tuple[TrainState, Trajectory]:
    """Play the rollouts of an iteration."""
    key, now = jax.random.split(state.key)
    actor, trajectories, _ = play(trainer, state.learner, state.actor, now)
    return state._replace(actor=actor, key=key), trajectories


def _learn(
    trainer: Trainer, learns: tuple[LearnerState, Trajectory]
) -> tuple[tuple[LearnerState, Trajectory], Any]:
    """Learn from the same trajectories again."""
    learner, trajectories = learns
    learner, metrics = learn(trainer, learner, trajectories)
    return (learner, trajectories), metrics


def _made_up(shapes: Any) -> Any:
    """Return arrays of random numbers in place of anything; integers are 1 or 2."""
    leaves, tree = jax.tree.flatten(shapes)
    keys = jax.random.split(jax.random.key(2), len(leaves))
    return jax.tree.unflatten(tree, map(_random, keys, leaves))


def _random(key: Array, leaf: Any) -> Array:
    if leaf.dtype == bool:
        return jax.random.bernoulli(key, ENDED, leaf.shape)
    if jnp.issubdtype(leaf.dtype, jnp.integer):
        return jax.random.randint(key, leaf.shape, 1, 3, leaf.dtype)
    return jax.random.normal(key, leaf.shape, leaf.dtype)
