"""Several hosts that train one run together (`jax.distributed`), each with the same command.

All of them compute, and of a checkpoint each writes the parts of arrays that lie on its devices.
The first one reads and writes all else that belongs to the run, and says what happens; what it
finds out, and what goes wrong with it, it tells the others. All need to see the same files. A
checkpoint can be read by any number of hosts.
"""

import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from cbet_jax.config import SettingsError
from cbet_jax.runs.directory import RunDirectoryError

ADDRESS, PROCESSES, PROCESS = "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"


class ElsewhereError(RunDirectoryError):
    """Something went wrong on the first host; the message is what it says."""


def join() -> None:
    """Finds the other hosts, before any device is used, unless that was done.

    Where they are is said by three variables of the environment (`ADDRESS`: host:port of the
    first, `PROCESSES`, `PROCESS`: from 0 on), or else by SLURM or another launcher that JAX knows.

    Raises:
        SettingsError: they are not to be found.
    """
    if jax.distributed.is_initialized():
        return
    # The runner answers SIGTERM itself, and tells the other hosts.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(num_processes=_number(PROCESSES), process_id=_number(PROCESS))
    except ValueError:
        raise SettingsError(
            f"--distributed needs {ADDRESS} (host:port of the first), {PROCESSES} and {PROCESS} "
            "in the environment, or SLURM"
        ) from None
    except RuntimeError as error:
        raise SettingsError(f"the hosts did not find each other: {error}") from None


def is_first() -> bool:
    """Returns whether this host reads and writes; one that is alone does."""
    return jax.process_index() == 0


def on_first[R](function: Callable[[], R]) -> R:
    """Calls a function on the first host alone, and returns everywhere what it returned there.

    Raises:
        ElsewhereError: it failed there, where its own exception goes on.
    """
    if jax.process_count() == 1:
        return function()
    if not is_first():
        result, trouble = pickle.loads(_broadcast(b""))
        if trouble is not None:
            raise ElsewhereError(trouble)
        return result
    try:
        result = function()
    except Exception as error:
        _broadcast(pickle.dumps((None, str(error))))
        raise
    _broadcast(pickle.dumps((result, None)))
    return result


@contextmanager
def first_inside(open_: Callable[[], AbstractContextManager[Any]]) -> Iterator[Any]:
    """Opens something on the first host alone; gives what was opened there, None elsewhere.

    Raises:
        ElsewhereError: it could not be opened there, where its own exception goes on.
    """
    with ExitStack() as stack:
        opened: list[Any] = []
        on_first(lambda: opened.append(stack.enter_context(open_())))
        yield opened[0] if opened else None


def largest(number: int) -> int:
    """Returns the largest of the hosts' numbers."""
    if jax.process_count() == 1:
        return number
    return int(multihost_utils.process_allgather(np.int32(number)).max())


def fetch(array: Any) -> np.ndarray:
    """Returns a copy of a whole array, wherever its parts are; all hosts must ask for it."""
    if isinstance(array, jax.Array) and not array.is_fully_addressable:
        array = multihost_utils.process_allgather(array, tiled=True)
    return np.array(array)


def _number(variable: str) -> int | None:
    text = os.environ.get(variable)
    return None if text is None else int(text)


def _broadcast(content: bytes) -> bytes:
    """Returns the first host's bytes."""
    length = int(multihost_utils.broadcast_one_to_all(np.int32(len(content))))
    numbers = np.zeros(length, np.uint8)
    if is_first():
        numbers[:] = np.frombuffer(content, np.uint8)
    return bytes(np.asarray(multihost_utils.broadcast_one_to_all(numbers)).astype(np.uint8))
