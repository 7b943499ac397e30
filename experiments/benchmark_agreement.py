"""Whether another backend computes what the CPU's does: one iteration of training, compared."""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from cbet_jax.checkpoint import on_host
from cbet_jax.config import TrainSettings
from cbet_jax.train import init, iterate, make_trainer
from envs.types import World

BOUNDS = {"update": 1e-2, "metrics": 1e-3, "floats": 1e-3}  # relative


class Agreement(NamedTuple):
    """How far two backends' numbers are from each other."""

    integers: int  # all of them: worlds, counts, keys, ...
    different: tuple[str, ...]  # names of the arrays of integers that are not equal
    update: float  # |difference| / |CPU's|, of all that the learnt parameters were changed by
    metrics: float  # the largest relative difference
    floats: float  # |difference| / |CPU's|, of all other floating-point numbers of the state

    @property
    def agrees(self) -> bool:
        """Whether integers are equal, and all else is within `BOUNDS`."""
        near = all(getattr(self, name) <= bound for name, bound in BOUNDS.items())
        return near and not self.different


def compare_with_cpu(settings: TrainSettings, world: World) -> Agreement:
    """Trains for an iteration from one state on the CPU and on the default device.

    Float32 products are computed as such on both, without a GPU's shortcuts (TF32).

    Args:
        settings: of the training.
        world: that it plays in.

    Raises:
        RuntimeError: this process cannot use the CPU's backend.
    """
    cpu = jax.devices("cpu")[0]
    trainer = make_trainer(settings, world)
    with jax.default_device(cpu):
        begun = jax.jit(partial(init, trainer))(jax.device_put(jax.random.key(0), cpu))
    program = jax.jit(partial(iterate, trainer))
    results = []
    with jax.default_matmul_precision("highest"):
        for device in (cpu, jax.devices()[0]):
            results.append(jax.block_until_ready(program(jax.device_put(begun, device))))
    return compare(begun, *results)


def compare(begun: Any, here: Any, there: Any) -> Agreement:
    """Compares what two backends made of one `TrainState`.

    Args:
        begun: the state before.
        here: the CPU's state after, and its metrics.
        there: the other's.
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
    )


def _distance(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> float:
    """Returns |ours - theirs| / |ours|; infinite if they are not numbers at the same places."""
    one, other = (
        np.concatenate([tree[name].ravel() for name in ours]).astype(np.float64)
        for tree in (ours, theirs)
    )
    if not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return float("inf")
    difference, size = (np.linalg.norm(x[np.isfinite(one)]) for x in (one - other, one))
    return float(difference / size) if size else float(difference)
