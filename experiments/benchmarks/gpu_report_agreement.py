"""Whether another backend computes what the CPU does, with factors of 32 and of 16 bits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from cbet_jax.config import TrainSettings
from cbet_jax.learner import LearnerState
from cbet_jax.program import seed_keys
from cbet_jax.runs.checkpoint import on_host
from cbet_jax.train import Trainer, TrainState, init, iterate, learn, make_trainer, play
from cbet_jax.types import Trajectory
from envs.types import World
from experiments.benchmarks import phases

BOUNDS = {"update": 1e-2, "metrics": 1e-3, "floats": 1e-3}  # relative
#: with 8-bit mantissas: a number in the middle between two is rounded either way
ROUNDED = {"update": 5e-2, "metrics": 2e-2, "floats": 1e-3}


class Agreement(NamedTuple):
    """How far two backends' numbers are from each other."""

    integers: int  # how many were compared: worlds, counts, keys, ...
    different: tuple[str, ...]  # names of the arrays of integers that are not equal
    update: float  # |difference| / |CPU's|, of all that the learnt parameters were changed by
    metrics: float  # the largest relative difference
    floats: float  # |difference| / |CPU's|, of all other floating-point numbers of the state
    bounds: Mapping[str, float]  # of the last three

    @property
    def agrees(self) -> bool:
        """Whether integers are equal, and all else is within the bounds."""
        near = all(getattr(self, name) <= bound for name, bound in self.bounds.items())
        return near and not self.different


class Followed(NamedTuple):
    """What a backend computed from given trajectories."""

    learner: LearnerState
    logits: Array  # [seeds, rollouts, T, N, actions], as in acting

    @property
    def params(self) -> Any:
        """The policy's parameters that learn."""
        return self.learner.policy


def compare_with_cpu(settings: TrainSettings, world: World) -> Agreement:
    """Train for an iteration from one state on the CPU and on the default device.

    Both compute float32 products in full, without a GPU's shortcuts (TF32).

    Args:
        settings: of the training, with factors of 32 bits.
        world: the worlds that it plays.

    Raises:
        RuntimeError: this process cannot use the CPU's backend.
    """
    trainers = _trainers(settings, world)
    begun = _on_cpu(partial(init, trainers[0]), jax.random.key(0))
    return compare(begun, *_on_both([partial(iterate, each) for each in trainers], begun), BOUNDS)


def follow_cpu(settings: TrainSettings, world: World, seeds: int) -> Agreement:
    """Act on the CPU's trajectories and learn from them, on both; seeds side by side.

    This is for factors of 16 bits: rounding changes logits so much that now and then another
    action is drawn, after which two runs have nothing in common.

    Args:
        settings: of the training.
        world: the worlds that it plays.
        seeds: how many.

    Raises:
        RuntimeError: this process cannot use the CPU's backend.
    """
    trainers = _trainers(settings, world)
    trainer = trainers[0]
    state = _on_cpu(jax.vmap(partial(init, trainer)), seed_keys(seeds))
    trajectories = _on_cpu(jax.vmap(partial(_trajectories, trainer)), state)
    follow = [jax.vmap(partial(_follow, each)) for each in trainers]
    results = _on_both(follow, state, trajectories)
    return compare(state, *results, ROUNDED)


def _trainers(settings: TrainSettings, world: World) -> list[Trainer]:
    """Return the parts of a run as they are written for a CPU, and for the platform of a world."""
    on_cpu = replace(world, platform="cpu")
    return [make_trainer(settings, each) for each in (on_cpu, world)]


def _trajectories(trainer: Trainer, state: TrainState) -> Trajectory:
    return play(trainer, state.learner, state.actor, state.key)[1]


def _follow(
    trainer: Trainer, state: TrainState, trajectories: Trajectory
) -> tuple[Followed, dict[str, Array]]:
    learner, metrics = learn(trainer, state.learner, trajectories)
    return Followed(learner, phases.act(trainer, state, trajectories)), metrics


def _on_cpu(function: Callable[..., Any], *arguments: Any) -> Any:
    cpu = jax.devices("cpu")[0]
    with jax.default_device(cpu):
        return jax.block_until_ready(jax.jit(function)(*jax.device_put(arguments, cpu)))


def _on_both(functions: Sequence[Callable[..., Any]], *arguments: Any) -> tuple[Any, Any]:
    """Return the results of one function on the CPU, and of another on the default device."""

    def on(device: jax.Device, function: Callable[..., Any]) -> Any:
        return jax.block_until_ready(jax.jit(function)(*jax.device_put(arguments, device)))

    with jax.default_matmul_precision("highest"):
        here, there = functions
        return on(jax.devices("cpu")[0], here), on(jax.devices()[0], there)


def compare(begun: Any, here: Any, there: Any, bounds: Mapping[str, float]) -> Agreement:
    """Compare what two backends computed from one `TrainState`.

    Args:
        begun: the state before.
        here: the CPU's state after, and its metrics.
        there: those of the other backend.
        bounds: the largest relative differences allowed, named as in `BOUNDS`.
    """
    states, metrics = ([on_host(result[i]) for result in (here, there)] for i in (0, 1))
    integers, floats = (
        [name for name, leaf in states[0].items() if (leaf.dtype.kind == "f") == is_float]
        for is_float in (False, True)
    )
    before = on_host(begun.params)
    updates = [
        {name: leaf - before[name] for name, leaf in on_host(state.params).items()}
        for state, _ in (here, there)
    ]
    return Agreement(
        integers=sum(states[0][name].size for name in integers),
        different=tuple(
            name for name in integers if not np.array_equal(states[0][name], states[1][name])
        ),
        update=_distance(*updates),
        metrics=max(_distance(*({name: told[name]} for told in metrics)) for name in metrics[0]),
        floats=_distance(*({name: state[name] for name in floats} for state in states)),
        bounds=bounds,
    )


def _distance(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> float:
    """Return |ours - theirs| / |ours|, infinite if NaNs are at different places."""
    one, other = (
        np.concatenate([tree[name].ravel() for name in ours]).astype(np.float64)
        for tree in (ours, theirs)
    )
    if not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return float("inf")
    difference, size = (np.linalg.norm(x[np.isfinite(one)]) for x in (one - other, one))
    return float(difference / size) if size else float(difference)
