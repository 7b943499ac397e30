"""Pre-trained policies that are part of the package: one file each, in bfloat16.

`pretrained/NAME` names one wherever a command takes a run. It is unpacked into a run directory,
once, so it is watched, evaluated and transferred as any other run.

The files are made with `pack`, here of a run's first seed:

    python -c 'from cbet_jax.runs import directory, pretrained as p
    p.pack(directory.RunDirectory("runs/first"), 0, p.FILES / "my-name.npz")'
"""

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cbet_jax.config import RunSettings
from cbet_jax.runs import checkpoint, checkpoint_arrays, metrics_table
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.directory import (
    RunDirectory,
    RunDirectoryError,
    RunInUseError,
    refuse_other_content,
)
from cbet_jax.settings_json import from_json, to_json
from envs.errors import did_you_mean

PREFIX = "pretrained"  # before the names
FILES = Path(__file__).parents[1] / PREFIX
ABOUT = "about"  # the array that holds settings, frames and metrics, as JSON
POLICY = "learner.policy."  # before the names of the policy's arrays in a checkpoint
PATIENCE_SECONDS = 30  # for another command that is unpacking the same policy
INTERACTIONS = "interactions/"  # before the world; how lively each is, for `watch`


class Packed(NamedTuple):
    """A pre-trained policy of the package."""

    settings: RunSettings  # of a run that ended with it
    learner: dict[str, Any]  # its parameters as a checkpoint has them, arrays [seeds=1, ...]
    frames: int  # that it was trained for
    metrics: dict[str, float]  # the few that are known


def names() -> list[str]:
    """Return the names of the policies in the package."""
    return [f"{PREFIX}/{path.stem}" for path in sorted(FILES.glob("*.npz"))]


def is_named(path: Path) -> bool:
    """Return whether a path is such a name, and no folder of the user's."""
    return len(path.parts) == 2 and path.parts[0] == PREFIX and not path.exists()


def pack(directory: RunDirectory, seed_index: int, path: Path) -> Path:
    """Write the newest policy of one of a run's seeds into one file, in bfloat16.

    Args:
        directory: of the run, which is not one of transfer.
        seed_index: which of its seeds.
        path: the new file, an `.npz`.

    Raises:
        RunDirectoryError: the run holds no policy, or one that a pre-trained one biases.
    """
    settings = directory.settings()
    if settings.transfer:
        raise RunDirectoryError(
            f"{directory.root} is a run of transfer, whose policy is two networks: a file holds one"
        )
    saved = checkpoint.checkpoints(directory.checkpoints)
    saved = saved or checkpoint.checkpoints(directory.policies)  # all that is left of some runs
    if not saved:
        raise RunDirectoryError(f"{directory.root} holds no checkpoint yet")
    stored = checkpoint_arrays.read_arrays(saved[-1])
    arrays: dict[str, Any] = {
        name: np.asarray(jnp.asarray(array[seed_index], jnp.bfloat16)).view(np.uint16)
        for name, array in stored.items()
        if name.startswith(POLICY)
    }
    about = {
        "settings": to_json(settings),
        "seed_index": seed_index,
        "frames": int(saved[-1].name),
        "metrics": _last_interactions(directory),
    }
    arrays[ABOUT] = np.array(json.dumps(about))
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "xb") as file:
        np.savez_compressed(file, **arrays)
    return path


def read(name: Path) -> Packed:
    """Read a pre-trained policy, `pretrained/NAME`.

    Raises:
        RunDirectoryError: there is none of that name.
    """
    path = FILES / f"{name.name}.npz"
    if not path.is_file():
        there = names()
        nearest = did_you_mean(str(name), there) if there else "the package has none"
        raise RunDirectoryError(f"unknown policy {str(name)!r}; {nearest}")
    with np.load(path) as stored:
        about = json.loads(str(stored[ABOUT]))
        arrays = {key: _float32(stored[key]) for key in stored.files if key != ABOUT}
    settings = _as_packed(from_json(RunSettings, about["settings"]), about)
    seeds = {key: array[None] for key, array in arrays.items()}
    learner = {"policy": nested(seeds, POLICY), "fixed": ()}
    return Packed(settings, learner, about["frames"], about["metrics"])


def unpack(name: Path, into: Path) -> RunDirectory:
    """Make a run of a pre-trained policy, unless it was made before.

    Args:
        name: `pretrained/NAME`.
        into: the run is `into/NAME`.

    Raises:
        RunDirectoryError: there is none of that name, or the folder holds something else.
    """
    packed = read(name)
    directory = RunDirectory(into / name.name)
    refuse_other_content(directory.config, "run")
    directory.root.mkdir(parents=True, exist_ok=True)
    for seconds_left in reversed(range(PATIENCE_SECONDS)):
        if _holds(directory, packed):
            break
        try:
            with directory.lock():
                if not _holds(directory, packed):
                    _save(directory, packed)
        except RunInUseError:  # another command is unpacking it
            if not seconds_left:
                raise
            time.sleep(1)
    return directory


def _holds(directory: RunDirectory, packed: Packed) -> bool:
    """Return whether a policy has been unpacked.

    Raises:
        RunDirectoryError: the folder holds another run.
    """
    if directory.config.exists() and directory.settings() != packed.settings:
        raise RunDirectoryError(f"{directory.root} holds another run: move it away first")
    return bool(checkpoint.checkpoints(directory.checkpoints))


def _save(directory: RunDirectory, packed: Packed) -> None:
    """Save the run of a policy: its settings, a checkpoint, and the few metrics that are known."""
    settings, frames = packed.settings, packed.frames
    if not directory.config.exists():
        directory.create(settings)
    rows = [
        f"{settings.first_seed},{frames},{world},{value}\n"
        for world, value in packed.metrics.items()
    ]
    directory.metrics.write_text(metrics_table.HEADER + "".join(rows))
    iterations = frames // settings.train.iteration_frames
    position = Position(iterations, frames, directory.metrics.stat().st_size)
    state = {"learner": packed.learner}
    checkpoint.save(directory.checkpoints, state, position, to_json(settings))


def nested(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return those arrays whose names begin with a prefix as the tree that their names describe."""
    tree: dict[str, Any] = {}
    for name, array in arrays.items():
        if name.startswith(prefix):
            *path, last = name.removeprefix(prefix).split(".")
            branch = tree
            for part in path:
                branch = branch.setdefault(part, {})
            branch[last] = array
    return tree


def _as_packed(settings: RunSettings, about: dict[str, Any]) -> RunSettings:
    """Return the settings of a run that ended with one seed, at the frames of the policy."""
    train = replace(settings.train, frames=about["frames"] or settings.train.frames)
    first_seed = settings.first_seed + about["seed_index"]
    return replace(settings, train=train, seeds=1, first_seed=first_seed)


def _float32(halves: np.ndarray) -> np.ndarray:
    """Return bfloat16, stored as its bits, in float32."""
    return np.asarray(halves.view(jnp.bfloat16.dtype).astype(np.float32))


def _last_interactions(directory: RunDirectory) -> dict[str, float]:
    """Return the interactions in each world over the last tenth of a run."""
    table = metrics_table.read(directory.metrics) if directory.metrics.is_file() else {}
    last: dict[str, float] = {}
    for name, seeds in table.items():
        if name.startswith(INTERACTIONS):
            ends = [column.values[-max(1, len(column.values) // 10) :] for column in seeds.values()]
            last[name] = float(np.mean([values.mean() for values in ends]))
    return last
