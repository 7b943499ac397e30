"""Start, use and end the process of one simulator, which runs `worker.py`.

Images come through anonymous shared memory, which leaves no files behind. The process ends soon
after this one.
"""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from envs.habitat.simulator import PUBLISHED_AGENT, AgentSize, Axis, SimulatorError

WORKER = Path(__file__).with_name("worker.py")

# Variables withheld from a worker: those of JAX and CUDA; and, from another Python, this one's.
_KEPT_OUT = ("CUDA", "JAX", "LIBTPU", "NCCL", "TF_", "XLA")
_OF_THIS_PYTHON = ("PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX")
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_EXIT_SECONDS = 5.0  # a worker's time to end by itself
_LAST_WORDS_BYTES = 2000
_READ_BYTES = 1 << 16


class Settings(NamedTuple):
    """Which simulator to run, and its time limits."""

    scene: str  # a path, or a name that the simulator knows
    simulator: str = "raycast"  # or habitat_sim, or the path of a file with `open_scene`
    folder: Path | None = None  # data set of named scenes
    python: str = sys.executable  # interpreter in which the simulator is installed
    start_limit: float = 180.0  # seconds
    step_limit: float = 60.0  # seconds
    agent: AgentSize = PUBLISHED_AGENT
    up: Axis | None = None  # axis that points up in the file (None: as the file says)
    panoramas: bool = True  # False: black, which saves most of the rendering


class Hello(NamedTuple):
    """A worker's first message: its simulator, scene and versions."""

    simulator: str
    version: str
    renderer: str
    scene: str
    python: str


class WorkerLost(Exception):  # noqa: N818 (the name says what happened)
    """A worker died, or did not answer in time. The message is one line."""


class Worker:
    """A simulator in its own process, with one slot of shared memory for its images."""

    def __init__(self, settings: Settings, memory: int, slot: int, slots: int) -> None:
        """Start the process, without waiting for it.

        Args:
            settings: what to start.
            memory: file descriptor of the memory that all workers share.
            slot: index of this worker's part of the memory.
            slots: number of parts.

        Raises:
            SimulatorError: the interpreter cannot be started.
        """
        self._settings = settings
        self._number = 0
        self._until = time.monotonic() + settings.start_limit
        self._buffer = b""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the worker)
        folder = str(settings.folder) if settings.folder else None
        memory_of = {"memory": memory, "slot": slot, "slots": slots}
        options = {**settings._asdict(), "folder": folder, **memory_of}
        try:
            self._process = subprocess.Popen(
                [settings.python, str(WORKER), json.dumps(options)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                env=environment(settings.python),
                pass_fds=(memory,),
                start_new_session=True,  # Ctrl-C is handled here
            )
        except OSError as error:
            self._errors.close()
            raise SimulatorError(
                f"{settings.python} cannot be started as an interpreter: {error.strerror}"
            ) from error

    def hello(self) -> Hello:
        """Wait until the simulator is ready.

        Raises:
            SimulatorError: the simulator cannot start; the message says why.
            WorkerLost: the worker died, or took too long.
        """
        said = self._read_line()
        if "error" in said:
            raise SimulatorError(said["error"])
        return Hello(*(str(said[field]) for field in Hello._fields))

    def send(self, request: dict[str, Any]) -> None:
        """Send a request, without waiting for the answer.

        Raises:
            WorkerLost: the worker has closed its pipe.
        """
        self._number += 1
        self._until = time.monotonic() + self._settings.step_limit
        line = json.dumps({**request, "number": self._number}).encode() + b"\n"
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
        except BrokenPipeError as error:
            raise self._lost() from error

    def receive(self) -> dict[str, Any]:
        """Wait for the answer to the last request.

        Raises:
            WorkerLost: the worker died, or did not answer in time.
        """
        while True:
            answer = self._read_line()
            if answer.get("number") == self._number:  # else it answers an abandoned request
                return answer

    def last_words(self) -> str:
        """Return the last line that the worker wrote to its standard error."""
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _LAST_WORDS_BYTES))
        lines = self._errors.read().decode(errors="replace").split("\n")
        self._errors.seek(0, os.SEEK_END)
        return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")

    def hang_up(self) -> None:
        """Close the pipe, which makes the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def close(self) -> None:
        """End the process, by force if necessary, and free its resources."""
        self.hang_up()
        try:
            self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()

    def kill(self) -> None:
        """Kill the process, and free its resources."""
        self._process.kill()
        self.close()

    def _read_line(self) -> dict[str, Any]:
        """Read one answer."""
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(output, select.POLLIN)
        while b"\n" not in self._buffer:
            # Poll at least once, even after the limit: this process may have been suspended.
            if not poll.poll(1000 * max(0.0, self._until - time.monotonic())):
                raise WorkerLost("it did not answer in time")
            read = os.read(output, _READ_BYTES)
            if not read:
                raise self._lost()
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise WorkerLost(f"it said something else than an answer: {line[:80]!r}")
        return answer

    def _lost(self) -> WorkerLost:
        """Return an error with the way in which the process ended."""
        try:
            status = self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            return WorkerLost("it closed its pipe")
        how = (
            f"ended with status {status}"
            if status >= 0
            else f"was ended by {_signal_name(-status)}"
        )
        return WorkerLost(f"it {how}; its last words: {self.last_words()}")


def environment(python: str) -> dict[str, str]:
    """Return a worker's environment: one thread, quiet, and no variables of JAX and CUDA.

    Nor does it have this Python's own, if `python` is another one.
    """
    kept_out = _KEPT_OUT + (() if python == sys.executable else _OF_THIS_PYTHON)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(kept_out) and name != "PYTHONHOME"
    }
    quiet = {"HABITAT_SIM_LOG": "quiet", "MAGNUM_LOG": "quiet"}
    return kept | quiet | dict.fromkeys(_ONE_THREAD, "1")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
