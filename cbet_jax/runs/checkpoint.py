"""Checkpoints: the state of a run on disk, checked when it is read back.

A checkpoint holds all of `train.TrainState`: networks with their optimizers, the worlds and what
the agents remember, the method's memory (count tables), the key, and the iterations done.

It is a folder named after the run's frames, `checkpoints/0000001228800/`. Orbax's
`CheckpointManager` writes it under another name and renames it when complete, so it is whole
whenever the process dies, and keeps the newest few. In it is one file of numpy, `state.npz`: every
array under the name of its place in the state, such as `learner.policy.params.policy.bias`, and as
JSON how far the run is, with the type of each array. The CRC-32 of each array, which such a file
keeps, tells damage. Nothing is unpickled: a reader names the structure to fill, or builds nested
dictionaries from the names.

(Orbax's own files of arrays have no digests, and its threads print tracebacks when a file is
damaged or a disk is full.)
"""

import errno
import io
import json
import logging
import os
import shutil
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

from cbet_jax.runs import multihost
from cbet_jax.runs.atomic_write import replacing
from cbet_jax.runs.directory import FRAME_DIGITS, checkpoints, path_at
from cbet_jax.runs.reading import UnreadableError, open_to_read
from envs.errors import described

LARGEST_PACKED = 2**28  # bytes of a compressed array
KEPT = 3  # newest checkpoints; older ones are deleted
RECORD = "record"  # the JSON in a file
FILE = Path("default", "state.npz")  # the file in a checkpoint; orbax names the folder
#: errors of the machine or of permissions, after which a file may still be good
NOT_DAMAGE = {errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.EIO, errno.ESTALE}
UNFINISHED = ".orbax-checkpoint-tmp"  # follows the name of a folder that orbax is writing

# Orbax logs the traceback of an error that it raises as well, such as one of a full disk.
logging.getLogger("absl").setLevel(logging.CRITICAL)


class Position(NamedTuple):
    """How far a run has come."""

    iterations: int = 0
    frames: int = 0  # frames of each seed
    metrics_bytes: int = 0  # length of metrics.csv then
    metrics_digest: str = ""  # SHA-256 of these bytes


@dataclass(frozen=True)
class Loaded[T]:
    """A checkpoint that was read, and the newer ones that were damaged."""

    state: T
    position: Position
    path: Path
    damaged: tuple[Path, ...] = ()


class DamagedCheckpointError(UnreadableError):
    """A checkpoint that differs from what was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"checkpoint {path} is damaged")


class OtherProgramError(UnreadableError):
    """A checkpoint that lacks an array, or holds it with another shape or type."""

    def __init__(self, where: Path, name: str, found: np.ndarray | None, wanted: Any) -> None:
        there = "missing" if found is None else described(found)
        problem = f"{name} is {there}, not {described(wanted)}"
        super().__init__(f"checkpoint {where} is of another program: {problem}")
        self.name = name
        self.found_shape = None if found is None else found.shape


def save(folder: Path, state: Any, position: Position, kept: int | None = KEPT) -> Path:
    """Write a checkpoint into a folder, and delete all but the newest few (None: keep all).

    All hosts must take part. Typed keys are saved as their numbers.

    Raises:
        OSError: it cannot be written, and nothing of it stays.
    """
    path, arrays = path_at(folder, position.frames), on_host(state)

    def write() -> None:
        folder.mkdir(exist_ok=True)  # not its parents: a run that was deleted stays deleted
        try:
            with _manager(folder, kept) as manager:
                content = _Save(arrays, {"position": position._asdict()})
                manager.save(position.frames, args=content, force=True)
        except Exception:
            for unfinished in folder.glob(f"{path.name}{UNFINISHED}*"):
                shutil.rmtree(unfinished, ignore_errors=True)  # it may be what fills the disk
            raise

    multihost.on_first(write)
    return path


def save_new(folder: Path, state: Any, position: Position, kept: int | None) -> None:
    """Write a checkpoint, as `save` does, unless there is one of as many frames."""
    if not multihost.on_first(path_at(folder, position.frames).exists):
        save(folder, state, position, kept)


class _Handler(ocp.CheckpointHandler):
    """Writes what a checkpoint holds where orbax says."""

    def save(self, directory: os.PathLike[str], args: "_Save") -> None:
        """Write the arrays and the record."""
        write_file(Path(directory) / FILE.name, args.arrays, args.record)

    def restore(self, directory: os.PathLike[str], args: Any = None) -> Any:
        """Refuse: `load` reads by itself, without waiting for other hosts."""
        raise NotImplementedError


@ocp.args.register_with_handler(_Handler, for_save=True, for_restore=True)
@dataclass
class _Save(ocp.args.CheckpointArgs):
    """What a checkpoint holds."""

    arrays: Mapping[str, np.ndarray]
    record: dict[str, Any]


def _manager(folder: Path, kept: int | None) -> ocp.CheckpointManager:
    """Return the manager that writes a folder's checkpoints from the first host."""
    options = ocp.CheckpointManagerOptions(
        max_to_keep=kept,
        step_format_fixed_length=FRAME_DIGITS,
        cleanup_tmp_directories=True,
        create=False,
        save_root_metadata=False,
        enable_async_checkpointing=False,
        multiprocessing_options=ocp.options.MultiprocessingOptions(
            primary_host=0, active_processes={0}, barrier_sync_key_prefix="host0"
        ),
    )
    return ocp.CheckpointManager(folder.absolute(), item_handlers=_Handler(), options=options)


def on_host(tree: Any) -> dict[str, np.ndarray]:
    """Return a copy of each array by name, random keys as numbers; all hosts must call this."""
    return {
        name: multihost.fetch(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
        for name, leaf in named_leaves(tree).items()
    }


def newest_good[T](folder: Path, read: Callable[[Path], tuple[T, Position]]) -> Loaded[T] | None:
    """Return the result of `read` for the newest undamaged checkpoint (None: there is none).

    Raises:
        UnreadableError: every checkpoint is damaged.
    """
    damaged: list[Path] = []
    for path in reversed(checkpoints(folder)):
        try:
            return Loaded(*read(path), path, tuple(damaged))
        except DamagedCheckpointError:
            if path not in checkpoints(folder):  # a run goes on: newer ones are there
                return newest_good(folder, read)
            damaged.append(path)
    if damaged:
        raise UnreadableError(f"every checkpoint in {folder} is damaged ({len(damaged)} of them)")
    return None


def load[T](path: Path, template: T) -> tuple[T, Position]:
    """Read those arrays of a checkpoint that a template (arrays or `ShapeDtypeStruct`) names.

    Raises:
        UnreadableError: it is damaged (DamagedCheckpointError), or cannot be read now.
        OtherProgramError: an array is missing, or has another shape or type.
    """
    names = named_leaves(template)
    arrays, record = read_file(path / FILE, names.__contains__)
    return fill(template, arrays, path), _position(path, record)


def fill[T](template: T, arrays: Mapping[str, np.ndarray], path: Path) -> T:
    """Return what a template names (arrays or `ShapeDtypeStruct`), from a checkpoint's arrays.

    Raises:
        OtherProgramError: an array is missing, or has another shape or type.
    """
    filled = []
    for name, leaf in named_leaves(template).items():
        wanted = jax.eval_shape(jax.random.key_data, leaf) if _is_key(leaf) else leaf
        found = arrays.get(name)
        if found is None or found.shape != wanted.shape or found.dtype != wanted.dtype:
            raise OtherProgramError(path, name, found, wanted)
        # A copy, since the program overwrites its input.
        array = jnp.array(found, copy=True)
        filled.append(jax.random.wrap_key_data(array) if _is_key(leaf) else array)
    state: T = jax.tree.unflatten(jax.tree.structure(template), filled)
    return state


def read_arrays(
    path: Path, prefixes: tuple[str, ...] = ("",)
) -> tuple[dict[str, np.ndarray], Position]:
    """Return those arrays of a checkpoint whose names begin with a prefix, and how far the run was.

    Raises:
        UnreadableError: it is damaged (DamagedCheckpointError), or cannot be read now.
    """
    arrays, record = read_file(path / FILE, lambda name: name.startswith(prefixes))
    return arrays, _position(path, record)


def write_file(path: Path, arrays: Mapping[str, np.ndarray], record: dict[str, Any]) -> None:
    """Write arrays and a record into one file, which replaces `path` when it is complete.

    Raises:
        OSError: it could not be written, and nothing of it stays.
    """
    types = {name: str(array.dtype) for name, array in arrays.items()}
    text = np.frombuffer(json.dumps({**record, "types": types}).encode(), np.uint8)
    contents: Any = {RECORD: text, **arrays}
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, allow_pickle=False, **contents)
        file.flush()
        os.fsync(file.fileno())


def read_file(
    path: Path, wants: Callable[[str], bool] = lambda name: True
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return those arrays of a file of `write_file` that `wants` chooses by name, and the record.

    Raises:
        UnreadableError: it is damaged (DamagedCheckpointError), or cannot be read now.
    """
    try:
        with open_to_read(path) as file, zipfile.ZipFile(file) as archive:
            record: dict[str, Any] = json.loads(bytes(_member(archive, RECORD)))
            types = record.pop("types")
            arrays = {
                name: _member(archive, name).view(np.dtype(kind))  # numpy keeps no bfloat16
                for name, kind in types.items()
                if wants(name)
            }
    except (MemoryError, ImportError):
        raise
    except Exception as error:  # a damaged file can raise any error of the readers
        if isinstance(error, OSError) and error.errno in NOT_DAMAGE:
            raise UnreadableError(f"{path} cannot be read: {error.strerror}") from error
        raise DamagedCheckpointError(path) from error
    return arrays, record


def named_leaves(tree: Any) -> dict[str, Any]:
    """Return each array of a tree by the name of its place."""
    leaves, _ = jax.tree.flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def _member(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """Read an array of a file; reading it whole checks its CRC-32."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type and info.file_size > LARGEST_PACKED:  # only of the package
        raise ValueError(name)
    return np.load(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False)


def _position(path: Path, record: dict[str, Any]) -> Position:
    try:
        position = Position(**record["position"])
    except (KeyError, TypeError) as error:
        raise DamagedCheckpointError(path) from error
    *numbers, digest = position
    if type(digest) is not str or not all(type(x) is int and x >= 0 for x in numbers):
        raise DamagedCheckpointError(path)
    return position


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
