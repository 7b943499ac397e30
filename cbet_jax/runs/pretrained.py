"""Pre-trained policies of the package: one file each, in bfloat16.

`pretrained/NAME` names one wherever a command takes a run; it is unpacked into a run directory.

`pack` makes the files (cbet-* were compressed afterwards), here of a run's first seed:

    python -c 'from cbet_jax.runs import directory, pretrained as p; p.pack(
    directory.RunDirectory("runs/first"), 0, p.FILES / "my-name.npz")'
"""

import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cbet_jax.agent import AgentParams
from cbet_jax.config import RunSettings
from cbet_jax.runs import checkpoint, metrics_table, saved_policies
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError, path_at
from cbet_jax.settings.as_json import from_json, to_json
from envs.errors import did_you_mean

PREFIX = "pretrained"  # begins the names
FILES = Path(__file__).parents[1] / PREFIX
INTERACTIONS = "interactions/"  # begins the metric of a world, by which `watch` chooses


class Packed(NamedTuple):
    """A pre-trained policy of the package."""

    settings: RunSettings  # settings of a one-seed run that ended with it
    params: AgentParams  # arrays [seeds=1, ...]
    frames: int  # frames of its training
    metrics: dict[str, float]  # the last interactions in each world, where known


def names() -> list[str]:
    """Return the names of the policies in the package."""
    return [f"{PREFIX}/{path.stem}" for path in sorted(FILES.glob("*.npz"))]


def is_named(path: Path) -> bool:
    """Return whether a path is `pretrained/NAME`, and not a folder of the user."""
    return len(path.parts) == 2 and path.parts[0] == PREFIX and not path.exists()


def pack(directory: RunDirectory, seed_index: int, path: Path) -> None:
    """Write one seed's newest policy, or a task's best one, into one `.npz` file, in bfloat16.

    Raises:
        RunDirectoryError: the run holds no policy, or a biased one, of two networks.
    """
    settings = directory.settings()
    loaded = saved_policies.load_params(directory)
    params, transfer = saved_policies.without_reference(loaded.state, settings.transfer)
    if transfer:
        raise RunDirectoryError(f"the policy in {directory.root} is two networks: a file holds one")
    frames = saved_policies.frames_of_seeds(loaded, settings.seeds)[seed_index]
    own = jax.tree.map(lambda a: jnp.asarray(a[[seed_index]], jnp.bfloat16), params.learnt)
    ended = replace(
        settings,
        transfer=None,
        train=replace(settings.train, frames=frames or settings.train.frames),
        seeds=1,
        first_seed=settings.first_seed + seed_index,
    )
    record = {
        "settings": to_json(ended),
        "frames": frames,
        "metrics": _last_interactions(directory, ended.first_seed),
    }
    checkpoint.write_file(path, checkpoint.on_host({"learner": {"policy": own}}), record)


def read(name: Path) -> Packed:
    """Read a pre-trained policy, `pretrained/NAME`.

    Raises:
        RunDirectoryError: the name is unknown.
    """
    path = FILES / f"{name.name}.npz"
    if not path.is_file():
        there = names()
        nearest = did_you_mean(str(name), there) if there else "the package has none"
        raise RunDirectoryError(f"unknown policy {str(name)!r}; {nearest}")
    halves, record = checkpoint.read_file(path)
    arrays = {key: array.astype(np.float32) for key, array in halves.items()}
    params = saved_policies.params_of(arrays, name)
    settings = from_json(RunSettings, record["settings"])
    return Packed(settings, params, record["frames"], record["metrics"])


def unpack(name: Path, into: Path) -> RunDirectory:
    """Make a run `into/NAME` of the policy `pretrained/NAME`, unless it was made before.

    Raises:
        RunDirectoryError: the name is unknown, or the folder holds something else.
    """
    packed, directory = read(name), RunDirectory(into / name.name)
    if not directory.root.exists():
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name.name}.", dir=into) as folder:
            new = RunDirectory(Path(folder) / name.name)
            _save(new, packed)
            with contextlib.suppress(OSError):  # another command has unpacked it meanwhile
                new.root.rename(directory.root)
    if directory.settings() != packed.settings:
        raise RunDirectoryError(f"{directory.root} holds another run: move it away first")
    return directory


def _save(directory: RunDirectory, packed: Packed) -> None:
    """Save the run of a policy: settings, a checkpoint, and the known metrics."""
    settings, frames = packed.settings, packed.frames
    directory.create(settings)
    rows = ((settings.first_seed, frames, world, value) for world, value in packed.metrics.items())
    table = metrics_table.HEADER.encode() + metrics_table.lines(rows)
    directory.metrics.write_bytes(table)
    iterations = frames // settings.train.iteration_frames
    position = Position(iterations, frames, len(table), metrics_table.rows_digest(table))
    arrays = checkpoint.on_host({"learner": {"policy": packed.params.learnt}})
    file = path_at(directory.checkpoints, frames) / checkpoint.FILE
    file.parent.mkdir(parents=True)  # not `checkpoint.save`: it would start JAX's devices
    checkpoint.write_file(file, arrays, {"position": position._asdict()})


def _last_interactions(directory: RunDirectory, seed: int) -> dict[str, float]:
    """Return a seed's interactions in each world over the last tenth of a run."""
    table = metrics_table.read(directory.metrics) if directory.metrics.is_file() else {}
    return {
        name: float(seeds[seed].values[-max(1, len(seeds[seed].values) // 10) :].mean())
        for name, seeds in table.items()
        if name.startswith(INTERACTIONS) and seed in seeds
    }
