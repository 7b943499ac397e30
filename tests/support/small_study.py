"""A study small enough for tests: real networks, but stand-ins for what trains and plays them.

As a program it runs the study with its arguments, and kills itself while it writes the
metrics of the chunk that the first of them names.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from jax.sharding import Mesh

from cbet_jax.agent import make_agent
from cbet_jax.config import NetworkSettings, RunSettings, TransferSettings
from cbet_jax.evaluate import Episodes
from cbet_jax.intrinsic.interface import Params
from cbet_jax.learner import LearnerState
from cbet_jax.program import Program
from cbet_jax.runs import metrics_table
from cbet_jax.train import TrainState
from experiments import paper
from experiments.common.presets import PRESETS
from experiments.evaluation import gridworlds
from experiments.evaluation.evaluation_table import UNTRAINED
from experiments.evaluation.gridworlds import EvaluatedRun, PlayedWorld
from experiments.sweeps import plans
from tests.support.fake_program import program_of
from tests.support.here_queue import HereQueue
from tests.support.tiny import CHUNK, CHUNK_FRAMES, SEEDS, SETTINGS
from tests.support.unrendered import leave_unrendered

CHUNKS = 3
FRAMES = CHUNKS * CHUNK_FRAMES
TINY = RunSettings(train=replace(SETTINGS, frames=FRAMES), chunk=CHUNK)
ARGUMENTS = (
    *("--preset", "smoke", "--seeds", str(SEEDS), "--setups", "DoorKey", "--envs", "Unlock"),
    *("--methods", "cbet", "--tasks", "DoorKey-8x8", "--episodes", "2"),
    *("--evaluate-at", "50", "--checkpoint-seconds", "0"),
)


def walking(settings: RunSettings, mesh: Mesh | None = None, *, bad_update: int = -1) -> Program:
    """Return a program that compiles at once: the policies of the real one, on a random walk.

    The loss of update `bad_update` is not finite.
    """
    train, chunk = settings.train, settings.chunk
    return _walking(train.network, settings.transfer, chunk, train.iteration_frames, bad_update)


@cache  # traced once
def _walking(
    network: NetworkSettings,
    transfer: TransferSettings | None,
    chunk: int,
    frames: int,
    bad_update: int,
) -> Program:
    agent = make_agent(network, transfer, 7, (7, 7, 3))
    shapes = jax.eval_shape(agent.init, jax.random.key(0))

    def init(key: Array) -> TrainState:
        number = jax.random.normal(key)
        params = jax.tree.map(lambda leaf: jnp.full(leaf.shape, number, leaf.dtype), shapes)
        learner = LearnerState(params.learnt, Params({}, {}), None, {}, params.fixed)
        return TrainState(learner, (), (), key, jnp.zeros((), jnp.int32))

    def iterate(state: TrainState, _: None) -> tuple[TrainState, dict[str, Array]]:
        key, step_key = jax.random.split(state.key)
        step = 0.01 * jax.random.normal(step_key)
        policy = jax.tree.map(lambda leaf: leaf + step, state.learner.policy)
        found = {name: jnp.abs(step) for name in ("interactions", "success", "intrinsic_reward")}
        found["extrinsic_return"] = 0.95 + step
        iteration = state.iteration + 1  # of one update
        found["first_bad_update"] = jnp.where(iteration == bad_update, 0.0, jnp.nan)
        learner = state.learner._replace(policy=policy)
        return state._replace(learner=learner, key=key, iteration=iteration), found

    return program_of(init, iterate, chunk, frames)


def playing(
    runs: Sequence[EvaluatedRun], episodes: int, _seed: int, _console: Any
) -> Iterator[tuple[str, dict[int, PlayedWorld]]]:
    """Answers with numbers that depend on the policies and on the world, without playing."""
    for world in dict.fromkeys(world for run in runs for world in run.environments):
        yield (
            world,
            {
                index: {
                    name: _played(run, name, world, episodes)
                    for name in (run.settings.player, UNTRAINED)
                }
                for index, run in enumerate(runs)
                if world in run.environments
            },
        )


def _played(run: EvaluatedRun, name: str, world: str, episodes: int) -> Episodes:
    leaves = [] if name == UNTRAINED else jax.tree.leaves(run.policies.params)
    draw = np.random.default_rng([len(world), *b"".join(np.asarray(x).tobytes() for x in leaves)])
    number = draw.integers(1, 9, (run.settings.seeds, episodes))
    actions = draw.integers(1, 9, (*number.shape, 7))
    return Episodes(number > 4, number, actions.sum(axis=2), number / 9, actions)


def kill_at(chunk: int) -> None:
    """Lets this process kill itself when it has trained so many chunks in all."""
    append, written = metrics_table.Table.append, []

    def append_or_die(*arguments: Any) -> int:
        written.append(1)
        if len(written) == chunk:
            os.kill(os.getpid(), signal.SIGKILL)
        return append(*arguments)

    metrics_table.Table.append = append_or_die  # type: ignore[method-assign]


def stand_in(patch: pytest.MonkeyPatch) -> None:
    """Let studies be small, and done in this process by the stand-ins, until `patch` is undone."""
    patch.setitem(PRESETS, "smoke", TINY)
    for module in ("common.gridworlds", "minigrid_transfer"):
        patch.setattr(f"experiments.{module}.build", walking)
    patch.setattr(gridworlds, "play_each_world", playing)
    patch.setattr(plans, "LocalQueue", HereQueue)


if __name__ == "__main__":
    stand_in(pytest.MonkeyPatch())
    leave_unrendered(pytest.MonkeyPatch())
    kill_at(int(sys.argv[1]))
    paper.main(sys.argv[2:])
