"""The size of the runs that tests make, and what is read of them.

It is one size for all, so that most programs of the suite are compiled once.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cbet_jax.agent import AgentParams, network_agent
from cbet_jax.config import CountSettings, NetworkSettings, RunSettings, TrainSettings
from cbet_jax.program import seed_keys
from cbet_jax.runs import checkpoint
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.directory import RunDirectory, checkpoints, frames_of

SEEDS, WORLDS, STEPS = 2, 2, 10
CHUNK = 2  # iterations
CHUNK_FRAMES = CHUNK * WORLDS * STEPS
CHUNKS = 10
FRAMES = CHUNKS * CHUNK_FRAMES

NETWORK = NetworkSettings(
    conv_layers=1, channels=2, dense_layers=1, dense_units=4, lstm_layers=1, lstm_units=4
)
SETTINGS = TrainSettings(
    frames=FRAMES,
    worlds=WORLDS,
    batch=WORLDS,
    unroll=STEPS,
    network=NETWORK,
    counts=CountSettings(capacity=64),
)

# Learning in a corridor: several rollouts in an iteration, and several updates.
LEARNING_CHUNKS = 3
LEARNING = replace(
    SETTINGS,
    worlds=6,
    batch=4,
    unroll=5,
    intrinsic_coefficient=0.005,
    extrinsic_weight=0.2,
    counts=CountSettings(capacity=64, reset_probability=0.01),
)
LEARNING_CHUNK_FRAMES = CHUNK * LEARNING.iteration_frames
LEARNING = replace(LEARNING, frames=LEARNING_CHUNKS * LEARNING_CHUNK_FRAMES)

# The size of all others on a command line.
ARGUMENTS = (
    *("--preset", "smoke", "--seeds", str(SEEDS), "--chunk", str(CHUNK), "--frames", str(FRAMES)),
    *("--worlds", str(WORLDS), "--batch", str(WORLDS), "--unroll", str(STEPS)),
    *("--counts.capacity", "64", "--network.conv-layers", "1", "--network.channels", "2"),
    *("--network.dense-units", "4", "--network.lstm-units", "4", "--checkpoint-seconds", "0"),
    "--no-film",
)
HABITAT_FRAMES = 4 * CHUNK_FRAMES
HABITAT_ARGUMENTS = (
    *ARGUMENTS,
    *("--seeds", "1", "--frames", str(HABITAT_FRAMES), "--max-steps", "7"),
)


def drawn(
    actions: int = 7, view: tuple[int, ...] = (7, 7, 3), network: NetworkSettings = NETWORK
) -> AgentParams:
    """Return networks of a run's seeds, drawn in numpy: nothing is compiled."""
    init = network_agent(network, actions, view).init
    shapes = jax.eval_shape(jax.vmap(init), seed_keys(SEEDS))
    random = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: random.normal(0, 0.1, leaf.shape).astype(leaf.dtype), shapes)


def pretrained(
    root: Path, actions: int = 7, view: tuple[int, ...] = (7, 7, 3), **fields: Any
) -> RunDirectory:
    """Return a run that has saved its policies, and nothing else; its settings have the fields."""
    settings = RunSettings(TrainSettings(network=NETWORK), seeds=SEEDS, **fields)
    directory = RunDirectory(root)
    directory.create(settings)
    state = {"learner": {"policy": drawn(actions, view).learnt}}
    checkpoint.save(directory.checkpoints, state, Position(1, 80))
    return directory


def saved_frames(directory: RunDirectory) -> list[int]:
    """Return the frames of the checkpoints in a run's directory."""
    return [frames_of(path) for path in checkpoints(directory.checkpoints)]


def numbers(state: Any) -> dict[str, np.ndarray]:
    """Return every array of a state by its path, keys as their numbers."""
    leaves, _ = jax.tree.flatten_with_path(state)
    return {
        jax.tree_util.keystr(path): np.asarray(
            jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
        )
        for path, leaf in leaves
    }
