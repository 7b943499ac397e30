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

import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

from cbet_jax.runs import multihost
from cbet_jax.runs.atomic_write import set_aside as set_aside
from cbet_jax.runs.checkpoint_record import (
    RECORD,
    digest_of_file,
    digest_of_record,
    read_record,
)
from cbet_jax.runs.checkpoint_record import DamagedCheckpointError as DamagedCheckpointError
from cbet_jax.runs.checkpoint_record import checkpoints as checkpoints
from cbet_jax.runs.directory import RunDirectoryError
from cbet_jax.runs.json_files import completed, first_difference, write_json

KEPT = 3  # checkpoints; older ones are deleted
STATE, METRICS = "state", "metrics.csv"
COPIED_BYTES = 2**20  # at once
LOOP_CLOSED = "Event loop is closed"  # what asyncio says to writers that end after a failure


class OtherProgramError(RunDirectoryError):
    """A checkpoint that lacks an array, or holds it with another shape or type."""

    def __init__(
        self, path: Path, name: str, found: Any | None, wanted: jax.ShapeDtypeStruct
    ) -> None:
        problem = f"{name} is {_described(found)}, not {_described(wanted)}"
        super().__init__(f"checkpoint {path} is of another program: {problem}")
        self.name = name
        self.found_shape = None if found is None else tuple(found.shape)


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
        with _quiet(), ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as writer:
            writer.save((temporary / STATE).absolute(), _storable(state))
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
    difference = first_difference(_made_longer(completed(record["settings"]), settings), settings)
    if difference:
        raise RunDirectoryError(f"checkpoint {path} is of another run: there {difference}")
    _check_shapes(path, template)
    stored = read_arrays(path, set(_named_leaves(template)))
    return _filled(template, stored), Position(**record["position"])


def _check_shapes(path: Path, template: Any) -> None:
    """Refuse arrays of another shape or type before any is read: they could fill the memory."""
    with _quiet(), _reader() as reader:
        there = reader.metadata((path / STATE).absolute()).item_metadata.tree
    for name, wanted in _wanted(template).items():
        found = there.get(name)
        if wanted.size and (
            found is None or tuple(found.shape) != wanted.shape or found.dtype != wanted.dtype
        ):
            raise OtherProgramError(path, name, found, wanted)


def _made_longer(stored: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a checkpoint with the frames of its run, which may be more by now."""
    if not ("train" in stored and "train" in settings):
        return stored
    frames = max(stored["train"]["frames"], settings["train"]["frames"])
    return {**stored, "train": {**stored["train"], "frames": frames}}


def read_arrays(path: Path, names: set[str] | None = None) -> dict[str, np.ndarray]:
    """Return arrays of a checkpoint by their names: those asked for (None: all)."""
    folder, whole = (path / STATE).absolute(), ocp.RestoreArgs(restore_type=np.ndarray)
    with _reader() as reader:
        there = reader.metadata(folder).item_metadata.tree
        wanted = {name: array for name, array in there.items() if names is None or name in names}
        how = ocp.args.PyTreeRestore(
            item=wanted, restore_args=dict.fromkeys(wanted, whole), partial_restore=True
        )
        stored: dict[str, np.ndarray] = reader.restore(folder, how) if wanted else {}
    return stored


def stored_shapes(path: Path) -> dict[str, jax.ShapeDtypeStruct]:
    """Return the shape and type of each array of a checkpoint, by its name.

    Raises:
        DamagedCheckpointError: its files are not the ones that were written.
    """
    _verified_record(path)
    with _quiet(), _reader() as reader:
        there = reader.metadata((path / STATE).absolute()).item_metadata.tree
    return {name: jax.ShapeDtypeStruct(found.shape, found.dtype) for name, found in there.items()}


def on_host(tree: Any) -> dict[str, np.ndarray]:
    """Return a copy of each array by its name, keys as their integers; all hosts must ask."""
    return {name: multihost.fetch(leaf) for name, leaf in _numbers(tree).items()}


def _reader() -> ocp.Checkpointer:
    """Return a reader for this host only, which waits for no other host."""
    here = jax.process_index()
    options = ocp.options.MultiprocessingOptions(
        primary_host=here, active_processes={here}, barrier_sync_key_prefix=f"host{here}"
    )
    handler = ocp.PyTreeCheckpointHandler(multiprocessing_options=options)
    return ocp.Checkpointer(handler, multiprocessing_options=options)


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


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep orbax from printing the traceback of what it raises anyway.

    When one of its writers fails, the others may end after their event loop is closed, in threads
    that then print a traceback each; these may end after the block, too.
    """
    logger, shown = logging.getLogger("absl"), sys.unraisablehook
    before, logger.disabled = logger.disabled, True

    def show(raised: Any) -> None:
        if str(raised.exc_value) != LOOP_CLOSED:
            shown(raised)

    sys.unraisablehook = show
    try:
        yield
        sys.unraisablehook = shown
    finally:
        logger.disabled = before


def _described(array: Any | None) -> str:
    return "missing" if array is None else f"{array.dtype}{list(array.shape)}"


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _named_leaves(tree: Any) -> dict[str, Any]:
    leaves, _ = jax.tree.flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def _numbers(tree: Any) -> dict[str, Any]:
    """Return each array by its name, keys as their integers."""
    return {
        name: jax.random.key_data(leaf) if _is_key(leaf) else leaf
        for name, leaf in _named_leaves(tree).items()
    }


def _storable(state: Any) -> dict[str, Any]:
    # Orbax refuses empty arrays; `_filled` makes them anew.
    return {name: leaf for name, leaf in _numbers(state).items() if leaf.size}


def _wanted(template: Any) -> dict[str, jax.ShapeDtypeStruct]:
    """Return the shape and type of each array as it is stored, keys as their numbers."""
    leaves = _named_leaves(template)
    stored = {
        name: jax.eval_shape(jax.random.key_data, leaf) if _is_key(leaf) else leaf
        for name, leaf in leaves.items()
    }
    return {name: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for name, leaf in stored.items()}


def _filled[T](template: T, stored: dict[str, np.ndarray]) -> T:
    leaves, wanted = [], _wanted(template)
    for name, leaf in _named_leaves(template).items():
        shape, dtype = wanted[name].shape, wanted[name].dtype
        numbers = np.zeros(shape, dtype) if 0 in shape else stored[name]
        # A copy, never the host's memory itself: the program will overwrite what it is given.
        array = jnp.array(numbers, copy=True)
        leaves.append(jax.random.wrap_key_data(array) if _is_key(leaf) else array)
    filled: T = jax.tree.unflatten(jax.tree.structure(template), leaves)
    return filled
