"""Several hosts that train one run together (`jax.distributed`), each with the same command.

All hosts compute. Only the first writes files and prints: the others send it their parts of a
checkpoint, and it sends them results and errors. All need to see the same files. Any number of
hosts can read a checkpoint.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from cbet_jax.config import SettingsError
from cbet_jax.runs.directory import RunDirectoryError

# Environment variables: host:port of the first process, number of processes, index of this one.
ADDRESS, PROCESSES, PROCESS = "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"

LAST_PORT = 65_535


class ElsewhereError(RunDirectoryError):
    """Something failed on the first host; the message is the first host's."""


def join() -> None:
    """Connect to the other hosts, before any device is used; later calls do nothing.

    The environment (`ADDRESS`, `PROCESSES`, `PROCESS`), SLURM or another launcher that JAX knows
    names them.

    Raises:
        SettingsError: the hosts cannot be found.
    """
    if jax.distributed.is_initialized():
        return
    address = os.environ.get(ADDRESS)
    port = address.rpartition(":")[2] if address else ""
    if address and not (port.isascii() and port.isdecimal() and 0 < int(port[:9]) <= LAST_PORT):
        raise SettingsError(f"{ADDRESS} must be host:port (1..{LAST_PORT}), not {address}")
    # The training loop answers SIGTERM itself, and tells the other hosts.
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
    """Return whether this host reads and writes files."""
    return jax.process_index() == 0


def on_first[R: bool | int | str | None](function: Callable[[], R]) -> R:
    """Call a function on the first host only, and return its result on every host.

    Raises:
        ElsewhereError: the function failed on the first host, which raises its own exception.
    """
    if jax.process_count() == 1:
        return function()
    if not is_first():
        answer = json.loads(_broadcast(b""))
        if "error" in answer:
            raise ElsewhereError(answer["error"])
        return answer["result"]
    try:
        result = function()
    except Exception as error:
        _broadcast(json.dumps({"error": str(error)}).encode())
        raise
    _broadcast(json.dumps({"result": result}).encode())
    return result


@contextmanager
def first_inside[T](open_: Callable[[], AbstractContextManager[T]]) -> Iterator[T | None]:
    """Open something on the first host only; yield it there, and None on the others.

    Raises:
        ElsewhereError: it could not be opened on the first host, which raises its own exception.
    """
    with ExitStack() as stack:
        opened: list[T] = []
        on_first(lambda: opened.append(stack.enter_context(open_())))
        yield opened[0] if opened else None


def largest(number: int) -> int:
    """Return the largest of the numbers of all hosts."""
    if jax.process_count() == 1:
        return number
    return int(multihost_utils.process_allgather(np.int32(number)).max())


def fetch(array: Any) -> np.ndarray:
    """Return a whole array of any devices in the host's memory; all hosts must call this.

    It is a copy, since the program overwrites its arrays; numpy arrays are returned as they are.
    """
    if isinstance(array, np.ndarray):
        return array
    if isinstance(array, jax.Array) and not array.is_fully_addressable:
        array = multihost_utils.process_allgather(array, tiled=True)
    return np.array(array)


def _number(variable: str) -> int | None:
    text = os.environ.get(variable)
    return None if text is None else int(text)


def _broadcast(content: bytes) -> bytes:
    """Return the first host's bytes."""
    length = int(multihost_utils.broadcast_one_to_all(np.int32(len(content))))
    numbers = np.zeros(length, np.uint8)
    if is_first():
        numbers[:] = np.frombuffer(content, np.uint8)
    return bytes(np.asarray(multihost_utils.broadcast_one_to_all(numbers)).astype(np.uint8))
