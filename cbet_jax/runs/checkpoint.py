"""Checkpoints: the state of a run (`train.TrainState`) on disk, verified when it is read back.

One checkpoint is a directory named after its frames:

    checkpoints/000001228800/state/            every array, written by orbax; each host writes its
                                               parts
    checkpoints/000001228800/checkpoint.json   the run's settings, how far it is, and a digest of
                                               each file
    checkpoints/000001228800/metrics.csv       the rows of the run's table until then

It is written under another name and renamed when complete, so a directory with such a name is a
whole checkpoint, whenever the process dies. The digests tell a file that was damaged later from a
good one.

Orbax writes the arrays. Its `CheckpointManager` keeps the newest few, too, but it has no digests,
takes the newest step for a good one, and renames a step before digests could be put into it.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax

from cbet_jax.runs import multihost
from cbet_jax.runs.atomic_write import set_aside as set_aside
from cbet_jax.runs.atomic_write import write_json
from cbet_jax.runs.checkpoint_arrays import STATE, array_shapes, load_arrays, save_arrays
from cbet_jax.runs.checkpoint_record import (
    RECORD,
    digest_of_file,
    digest_of_record,
    read_record,
)
from cbet_jax.runs.checkpoint_record import DamagedCheckpointError as DamagedCheckpointError
from cbet_jax.runs.checkpoint_record import checkpoints as checkpoints
from cbet_jax.runs.directory import RunDirectoryError
from cbet_jax.settings_json import first_difference

KEPT = 3  # checkpoints; older ones are deleted
METRICS = "metrics.csv"
COPIED_BYTES = 2**20  # at once


class Position(NamedTuple):
    """How far a run has come."""

    iterations: int = 0
    frames: int = 0  # for each seed
    metrics_bytes: int = 0  # length of metrics.csv at that moment
    metrics_digest: str | None = None  # SHA-256 of so much of it (None: an older run's)


@dataclass(frozen=True)
class Loaded[T]:
    """A checkpoint that was read, and the newer ones that were damaged."""

    state: T
    position: Position
    path: Path
    damaged: tuple[Path, ...]


def save(
    folder: Path,
    state: Any,
    position: Position,
    settings: dict[str, Any],
    kept: int | None = KEPT,
    metrics: Path | None = None,
) -> Path:
    """Write a checkpoint and delete all but the newest few; all hosts must take part.

    Each host writes the parts of the arrays that are on its devices.

    Args:
        folder: of the run's checkpoints.
        state: any tree of arrays; typed keys are saved as their numbers.
        position: how far the run has come.
        settings: the run's settings as nested dictionaries.
        kept: how many checkpoints stay (None: all).
        metrics: the run's table, of which the checkpoint keeps the rows until now (None: no rows).

    Returns:
        The checkpoint's directory.

    Raises:
        OSError: it could not be written, and nothing of it stays. ValueError: as orbax says so.
    """
    final = path_at(folder, position.frames)
    temporary = folder / f".{final.name}.tmp"

    def begin() -> None:
        folder.mkdir(exist_ok=True)  # not its parents: a run that was deleted stays so
        clean(folder)
        temporary.mkdir()
        if metrics:
            _copy(metrics, temporary / METRICS, position.metrics_bytes)

    def end() -> None:
        record: dict[str, Any] = {
            "position": position._asdict(),
            "settings": settings,
            "digests": _digests(temporary / STATE),
        }
        if metrics:
            record["metrics"] = digest_of_file(temporary / METRICS)
        write_json(temporary / RECORD, record | {"digest": digest_of_record(record)})
        if os.path.lexists(final):
            set_aside(final)
        os.rename(temporary, final)
        for old in [] if kept is None else checkpoints(folder)[:-kept]:
            shutil.rmtree(old)

    try:
        multihost.on_first(begin)
        save_arrays(temporary, state)
        multihost.on_first(end)
    except Exception:
        shutil.rmtree(temporary, ignore_errors=True)  # it may be what fills the disk
        raise
    return final


def clean(folder: Path) -> None:
    """Delete what a process that died while saving has left behind."""
    for path in folder.glob(".*.tmp"):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            shutil.rmtree(path)


def path_at(folder: Path, frames: int) -> Path:
    """Return the path of the checkpoint at a number of frames."""
    return folder / f"{frames:012d}"


def load_newest[T](folder: Path, template: T, settings: dict[str, Any]) -> Loaded[T] | None:
    """Read the newest checkpoint that is not damaged.

    Args:
        folder: of the run's checkpoints.
        template: the tree to fill: arrays or `jax.ShapeDtypeStruct`.
        settings: which the checkpoint must have been saved with.

    Returns:
        The checkpoint, or None where there is none at all.

    Raises:
        RunDirectoryError: it is another run's, or every checkpoint is damaged.
    """
    damaged: list[Path] = []
    for path in reversed(checkpoints(folder)):
        try:
            state, position = load(path, template, settings)
        except DamagedCheckpointError:
            damaged.append(path)
        else:
            return Loaded(state, position, path, tuple(damaged))
    if damaged:
        raise RunDirectoryError(f"every checkpoint in {folder} is damaged ({len(damaged)} of them)")
    return None


def load_at[T](folder: Path, frames: int, template: T, settings: dict[str, Any]) -> Loaded[T]:
    """Read the checkpoint at a number of frames.

    Args:
        folder: of the run's checkpoints.
        frames: of the checkpoint.
        template: the tree to fill: arrays or `jax.ShapeDtypeStruct`.
        settings: which the checkpoint must have been saved with.

    Raises:
        RunDirectoryError: there is none, it is damaged, or it is another run's.
    """
    path = path_at(folder, frames)
    if path not in checkpoints(folder):
        there = ", ".join(str(int(p.name)) for p in checkpoints(folder)) or "none"
        raise RunDirectoryError(f"no checkpoint at {frames} frames in {folder}; there: {there}")
    try:
        return Loaded(*load(path, template, settings), path, ())
    except DamagedCheckpointError:
        raise RunDirectoryError(f"checkpoint {path} is damaged") from None


def load[T](path: Path, template: T, settings: dict[str, Any]) -> tuple[T, Position]:
    """Read those arrays of one checkpoint that the template names.

    Args:
        path: the checkpoint's directory.
        template: the tree to fill: arrays or `jax.ShapeDtypeStruct`.
        settings: which the checkpoint must have been saved with.

    Raises:
        DamagedCheckpointError: its files are not the ones that were written.
        RunDirectoryError: it was saved with other settings or by another program.
    """
    record = _verified_record(path)
    difference = first_difference(_made_longer(record["settings"], settings), settings)
    if difference:
        raise RunDirectoryError(f"checkpoint {path} is of another run: there {difference}")
    return load_arrays(path, template), Position(**record["position"])


def _made_longer(stored: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a checkpoint with the frames of its run, which may be more by now."""
    if not ("train" in stored and "train" in settings):
        return stored
    frames = max(stored["train"]["frames"], settings["train"]["frames"])
    return {**stored, "train": {**stored["train"], "frames": frames}}


def stored_shapes(path: Path) -> dict[str, jax.ShapeDtypeStruct]:
    """Return the shape and type of each array of a checkpoint, by its name.

    Raises:
        DamagedCheckpointError: its files are not the ones that were written.
    """
    _verified_record(path)
    return array_shapes(path)


def _verified_record(path: Path) -> dict[str, Any]:
    record = read_record(path)
    try:
        intact = record["digests"] == _digests(path / STATE)
        if "metrics" in record:
            intact = intact and record["metrics"] == digest_of_file(path / METRICS)
        Position(**record["position"])
    except (OSError, TypeError) as error:
        raise DamagedCheckpointError(str(path)) from error
    if not intact:
        raise DamagedCheckpointError(str(path))
    return record


def _digests(folder: Path) -> dict[str, str]:
    """Return the digest of each file in a folder; a link has none, and so is no good file."""
    found = sorted(p for p in folder.rglob("*") if p.is_symlink() or not p.is_dir())
    return {str(path.relative_to(folder)): digest_of_file(path) for path in found}


def _copy(source: Path, target: Path, length: int) -> None:
    """Copy the beginning of a file."""
    with open(source, "rb") as file, open(target, "xb") as copy:
        while length > 0 and (part := file.read(min(length, COPIED_BYTES))):
            copy.write(part)
            length -= len(part)
