"""Runs that have saved networks without being trained."""

from pathlib import Path

import jax
import numpy as np

from cbet_jax.agent import make_agent
from cbet_jax.config import RunSettings
from cbet_jax.runs import checkpoint
from cbet_jax.runs.directory import RunDirectory
from envs.minigrid import rules, views
from experiments.common.presets import PRESETS

SEEDS = 2
VIEW_SHAPE = (views.VIEW_SIZE, views.VIEW_SIZE, 3)


def save_run(
    root: Path, settings: RunSettings | None = None, intrinsic: object = ()
) -> RunDirectory:
    """Make a run whose every number is the index of its seed.

    Args:
        root: an empty folder.
        settings: of the run (default: two seeds of the smoke preset).
        intrinsic: networks of the intrinsic method, or their shapes.
    """
    settings = settings or RunSettings(PRESETS["smoke"].train, ("LavaGapS5",), SEEDS, first_seed=7)
    directory = RunDirectory(root)
    directory.create(settings)
    agent = make_agent(settings.train.network, settings.transfer, len(rules.ACTIONS), VIEW_SHAPE)
    params = jax.eval_shape(agent.init, jax.random.key(0))
    learner = {"policy": params.learnt, "fixed": params.fixed, "intrinsic": intrinsic}

    def of_seeds(leaf: jax.ShapeDtypeStruct) -> np.ndarray:
        seeds = np.arange(settings.seeds).reshape(-1, *[1] * len(leaf.shape))
        return np.broadcast_to(seeds, (settings.seeds, *leaf.shape)).astype(leaf.dtype)

    state = {"learner": jax.tree.map(of_seeds, learner)}
    checkpoint.save(directory.checkpoints, state, checkpoint.Position())
    return directory
