"""The arrays of a checkpoint, written and read by orbax under the names of their places in a tree.

A tree of arrays is stored without its structure: whoever reads it names the structure to fill, so
nothing is unpickled.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

from cbet_jax.runs import multihost
from cbet_jax.runs.directory import RunDirectoryError

STATE = "state"  # the folder in a checkpoint
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


def save_arrays(path: Path, state: Any) -> None:
    """Write every array of a tree into a checkpoint; all hosts must take part.

    Raises:
        OSError: it could not be written. ValueError: as orbax says so.
    """
    with _quiet(), ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as writer:
        writer.save((path / STATE).absolute(), _storable(state))


def load_arrays[T](path: Path, template: T) -> T:
    """Read those arrays of a checkpoint that a template names.

    Args:
        path: of the checkpoint.
        template: the tree to fill: arrays or `jax.ShapeDtypeStruct`.

    Raises:
        OtherProgramError: an array is missing, or has another shape or type.
    """
    _check_shapes(path, template)
    return _filled(template, read_arrays(path, set(_named_leaves(template))))


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


def array_shapes(path: Path) -> dict[str, jax.ShapeDtypeStruct]:
    """Return the shape and type of each array of a checkpoint, by its name."""
    return {
        name: jax.ShapeDtypeStruct(found.shape, found.dtype)
        for name, found in _metadata(path).items()
    }


def on_host(tree: Any) -> dict[str, np.ndarray]:
    """Return a copy of each array by its name, keys as their integers; all hosts must ask."""
    return {name: multihost.fetch(leaf) for name, leaf in _numbers(tree).items()}


def _check_shapes(path: Path, template: Any) -> None:
    """Refuse arrays of another shape or type before any is read: they could fill the memory."""
    there = _metadata(path)
    for name, wanted in _wanted(template).items():
        found = there.get(name)
        if wanted.size and (
            found is None or tuple(found.shape) != wanted.shape or found.dtype != wanted.dtype
        ):
            raise OtherProgramError(path, name, found, wanted)


def _metadata(path: Path) -> dict[str, Any]:
    with _quiet(), _reader() as reader:
        there: dict[str, Any] = reader.metadata((path / STATE).absolute()).item_metadata.tree
    return there


def _reader() -> ocp.Checkpointer:
    """Return a reader for this host only, which waits for no other host."""
    here = jax.process_index()
    options = ocp.options.MultiprocessingOptions(
        primary_host=here, active_processes={here}, barrier_sync_key_prefix=f"host{here}"
    )
    handler = ocp.PyTreeCheckpointHandler(multiprocessing_options=options)
    return ocp.Checkpointer(handler, multiprocessing_options=options)


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
