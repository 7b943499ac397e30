"""Training in Python, without files: settings and worlds in, a policy out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from cbet_jax import own_code
from cbet_jax.agent import AgentParams, world_agent
from cbet_jax.config import RunSettings, SettingsError, TrainSettings
from cbet_jax.intrinsic import own
from cbet_jax.program import make_program, seed_keys
from cbet_jax.runs import metrics_table
from cbet_jax.runs.policy import Policy
from cbet_jax.runs.train_loop import NonFiniteLossError
from cbet_jax.types import Metrics
from envs.types import World

#: of the frames played so far, and each metric's mean over the chunk (NaN: no data); true: stop
type OnChunk = Callable[[int, dict[str, float]], Any]


def train_policy(
    settings: TrainSettings,
    world: World[Any],
    *,
    on_chunk: OnChunk | None = None,
    chunk: int = 5,
    seed: int = 0,
) -> Policy:
    """Train one agent, and return its policy; nothing is written.

    The numbers are those that a command's run has with these settings, worlds and seed. Where
    `settings.method` is a file, `FILE.py:FUNCTION`, it is loaded.

    Args:
        settings: of the training; rounded up to whole chunks.
        world: `settings.worlds` worlds that have not begun.
        on_chunk: is called after each chunk; if it returns something true, training stops.
        chunk: iterations in a chunk.
        seed: of the agent and its worlds.

    Raises:
        SettingsError: the method is unknown or does not work with these settings, or the worlds
            are not as many as the settings say.
        NonFiniteLossError: a loss was no finite number.
    """
    if own_code.is_own(settings.method):
        settings = replace(settings, method=own.load(settings.method))
    explore = settings.extrinsic_weight == 0
    run = RunSettings(settings, world.environments, 1, seed, chunk, explore=explore)
    if world.num_worlds != settings.worlds:
        raise SettingsError(f"settings ask for {settings.worlds} worlds, not {world.num_worlds}")
    agent = world_agent(settings.network, None, world)
    program = make_program(settings, world, 1, chunk, agent=agent)
    state, frames = program.init(seed_keys(1, seed)), 0
    while frames < settings.frames:
        state, metrics = program.advance(state)
        frames += chunk * program.frames_per_iteration
        if not np.isnan(metrics["first_bad_update"]).all():
            raise NonFiniteLossError(f"the loss is not a finite number by frame {frames}")
        if on_chunk and on_chunk(frames, _means(metrics)):
            break
    params: AgentParams = jax.tree.map(lambda leaf: leaf[0], state.learner.agent)
    return Policy(agent, params, run, frames)


def _means(metrics: Metrics) -> dict[str, float]:
    """Return the mean of each metric over the iterations, NaN where there is no data."""
    chunk = {name: np.asarray(values) for name, values in metrics.items()}
    return dict.fromkeys(chunk, float("nan")) | metrics_table.means(chunk)
