"""What the report on a GPU measures: training, acting alone, learning alone, at several sizes."""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from cbet_jax.config import TrainSettings
from cbet_jax.learner import LearnerState
from cbet_jax.train import (
    Trainer,
    TrainState,
    init,
    learn,
    make_program,
    make_trainer,
    play,
    seed_keys,
)
from cbet_jax.types import Trajectory
from envs.minigrid import make_world
from envs.types import World
from experiments.benchmarks import measure
from experiments.common.presets import PRESETS

TRAINING, ACTING, LEARNING = "training", "acting", "learning"
GOAL_SEEDS = 7
MANY_WORLDS = (160, 640)
ONE_AT_A_TIME = threading.Lock()
ENDED = 0.01  # share of the steps that are made up as an episode's last


class Case(NamedTuple):
    """Something to measure."""

    preset: str
    settings: TrainSettings
    environments: tuple[str, ...]
    seeds: int
    part: str = TRAINING

    @property
    def name(self) -> str:
        """What people call it."""
        size = f"{self.seeds} x {self.settings.worlds} worlds"
        return f"{self.preset}, {self.settings.network.factors}, {size}, {self.part}"

    @property
    def frames(self) -> int:
        """Frames that one call plays or learns from, of all seeds."""
        return self.seeds * self.settings.iteration_frames

    @property
    def flops(self) -> float:
        """Floating-point operations of the policy's network for one frame."""
        world = world_of(self.environments, self.settings.worlds)
        forward = measure.forward_flops(self.settings.network, world.view_shape, world.num_actions)
        return {TRAINING: 4, ACTING: 1, LEARNING: 3}[self.part] * forward


class Compiled(NamedTuple):
    """A program that is ready to be measured."""

    program: Any  # state -> (state, what else it finds); donates
    begin: Callable[[], Any]  # makes the first state


def cases(*, several_seeds: bool) -> list[list[Case]]:
    """Returns what to measure, in groups that are compiled together; what matters most is first.

    Args:
        several_seeds: whether they are computed side by side, as on a GPU. (A CPU takes them in
            turn, so that they would tell nothing.)
    """
    make = partial(_case, several_seeds=several_seeds)
    goal = make("paper", "bfloat16", GOAL_SEEDS)
    fewer = [
        make(preset, factors, seeds)
        for preset in ("paper", "laptop")
        for factors in ("bfloat16", "float32")
        for seeds in (GOAL_SEEDS, 1)
    ]
    wider = [make("paper", "bfloat16", 1, worlds) for worlds in MANY_WORLDS]
    rest = [case for case in dict.fromkeys([*fewer, *wider]) if case != goal]
    parts = [goal, goal._replace(part=ACTING), goal._replace(part=LEARNING)]
    return [parts, *(rest[i : i + 4] for i in range(0, len(rest), 4))]


def small_cases() -> list[list[Case]]:
    """Returns cases that show in little time that all of it works; their numbers mean nothing."""
    smoke = PRESETS["smoke"]
    settings = replace(smoke.train, worlds=4, batch=4, unroll=5)
    case = Case("smoke", settings, smoke.environments, 1)
    return [[case, case._replace(part=ACTING), case._replace(part=LEARNING)]]


def _case(
    preset: str, factors: Any, seeds: int, worlds: int | None = None, *, several_seeds: bool
) -> Case:
    run = PRESETS[preset]
    settings = replace(run.train, network=replace(run.train.network, factors=factors))
    settings = replace(settings, worlds=worlds or settings.worlds)
    return Case(preset, settings, run.environments, seeds if several_seeds else 1)


@cache
def world_of(environments: tuple[str, ...], number: int) -> World:
    """Returns worlds to explore."""
    return make_world(environments, number, explore=True)


@cache
def _first_moment(environments: tuple[str, ...], number: int) -> Any:
    """Returns worlds at their beginning; drawing their levels takes long to compile."""
    return jax.jit(world_of(environments, number).init)(jax.random.key(1))


@cache
def _beginning(case: Case) -> Any:
    """Compiles what makes the first state of every seed; all begin in the same levels."""
    begun = _first_moment(case.environments, case.settings.worlds)
    trainer = _trainer(case)
    trainer = trainer._replace(world=replace(trainer.world, init=lambda _: begun))
    return jax.jit(jax.vmap(partial(init, trainer))).lower(seed_keys(case.seeds)).compile()


def _trainer(case: Case) -> Trainer:
    return make_trainer(case.settings, world_of(case.environments, case.settings.worlds))


def compile_case(case: Case) -> Compiled:
    """Compiles a case's program; several can be compiled at a time."""
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
    with ONE_AT_A_TIME:  # cases share beginnings: what one compiles, others wait for
        beginning = _beginning(case._replace(part=TRAINING))

    def begin() -> Any:
        state = beginning(seed_keys(case.seeds))
        return (state.learner, _made_up(given[1])) if case.part == LEARNING else state

    return Compiled(compiled, begin)


def _training(trainer: Trainer, case: Case) -> Any:
    return make_program(case.settings, trainer.world, case.seeds, iterations_per_chunk=1).advance


def _over_seeds(function: Callable[[Any], Any], seeds: int) -> Callable[[Any], Any]:
    if seeds > 1:
        return jax.vmap(function)
    return lambda states: jax.tree.map(
        lambda leaf: leaf[None], function(jax.tree.map(lambda leaf: leaf[0], states))
    )


def _act(trainer: Trainer, state: TrainState) -> tuple[TrainState, Trajectory]:
    """Plays the rollouts of an iteration."""
    key, now = jax.random.split(state.key)
    actor, trajectories, _ = play(trainer, state.learner.agent, state.actor, now)
    return state._replace(actor=actor, key=key), trajectories


def _learn(
    trainer: Trainer, learns: tuple[LearnerState, Trajectory]
) -> tuple[tuple[LearnerState, Trajectory], Any]:
    """Learns from the same trajectories again."""
    learner, trajectories = learns
    learner, metrics = learn(trainer, learner, trajectories)
    return (learner, trajectories), metrics


def _made_up(shapes: Any) -> Any:
    """Returns arrays of random numbers that can stand for anything: 1 or 2 where integers are."""
    leaves, tree = jax.tree.flatten(shapes)
    keys = jax.random.split(jax.random.key(2), len(leaves))
    return jax.tree.unflatten(tree, map(_random, keys, leaves))


def _random(key: Array, leaf: Any) -> Array:
    if leaf.dtype == bool:
        return jax.random.bernoulli(key, ENDED, leaf.shape)
    if jnp.issubdtype(leaf.dtype, jnp.integer):
        return jax.random.randint(key, leaf.shape, 1, 3, leaf.dtype)
    return jax.random.normal(key, leaf.shape, leaf.dtype)
