"""Where a sweep's jobs go: processes on this machine (`slurm.py` has the queue of a cluster)."""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from cbet_jax.runs.atomic_write import write_json
from experiments.common.training_command import AND
from experiments.sweeps import process
from experiments.sweeps.gpus import VARIABLE
from experiments.sweeps.plan import SweepGroup, SweepJob
from experiments.sweeps.process import Training

LOCAL, SLURM = "local", "slurm"
ERROR = "error: "  # begins the line in which a command says why it failed


class Submitted(NamedTuple):
    """A job in a queue."""

    name: str  # in the queue
    is_over: Callable[[], bool]
    answer: Path  # the file that holds its exit status once it is over
    errors: Path  # the file that holds what it has written to standard error
    output: Path  # the same, of standard output


class Queue(Protocol):
    """What a sweep needs of the place where its jobs run."""

    cluster: str  # LOCAL or SLURM

    def submit(self, group: SweepGroup, gpus: str | None) -> Submitted:
        """Submit a job that trains a group of runs on some of this machine's GPUs (None: all)."""

    def under_way(self, job: SweepJob) -> Submitted | None:
        """Return the job that an earlier sweep has left in the queue for a run, if it is there."""

    def leave(self, jobs: Iterable[Submitted]) -> None:
        """Let those jobs save and end that end with the sweep."""


class LocalQueue:
    """Processes on this machine, which start at once and end with the sweep."""

    cluster = LOCAL

    def __init__(self, folder: Path) -> None:
        """Note the folder of the jobs' output and exit statuses."""
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def submit(self, group: SweepGroup, gpus: str | None) -> Submitted:
        """Start a process that trains a group of runs on some of the GPUs (None: all)."""
        name = uuid.uuid4().hex[:8]
        description, answer, output, errors = (
            self._folder / f"{name}{suffix}" for suffix in (".json", ".end", ".out", ".err")
        )
        self._folder.mkdir(parents=True, exist_ok=True)
        write_json(description, training_of(group, answer, os.getpid()).to_json())
        variables = os.environ if gpus is None else {**os.environ, VARIABLE: gpus}
        program = [sys.executable, "-m", process.__name__, str(description)]
        with open(output, "w") as out, open(errors, "w") as err, uninterrupted():
            started = subprocess.Popen(program, stdout=out, stderr=err, env=variables)
        self._processes[name] = started
        return Submitted(name, lambda: started.poll() is not None, answer, errors, output)

    def under_way(self, job: SweepJob) -> None:
        """Return None: no job outlives its sweep."""

    def leave(self, jobs: Iterable[Submitted]) -> None:
        """Let jobs save, and wait for their ends."""
        left = [self._processes[job.name] for job in jobs]
        for each in left:
            each.terminate()
        for each in left:
            each.wait()


def training_of(group: SweepGroup, answer: Path, parent: int | None) -> Training:
    """Return what a job does that trains a group of runs.

    Args:
        group: the runs.
        answer: the file that its exit status goes to.
        parent: the process on this machine without which it ends (None: it needs none).
    """
    first, *others = group.jobs
    runs = [(first.words, first.config)]
    runs += [((AND, *job.words), job.config) for job in others]
    return Training(first.module, runs, answer, parent)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let processes that are started here not hear Ctrl-C, nor that the terminal is gone.

    The sweep hears it, and lets them save. (Training itself hears Ctrl-C, too.)
    """
    numbers = (signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def status_of(job: Submitted) -> int | None:
    """Return the exit status of a job that is over; None: it was lost."""
    try:
        status = json.loads(job.answer.read_text())["status"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return status if isinstance(status, int) else None


def last_error(job: Submitted) -> str:
    """Return the line in which a job has said why it failed, or where it may have."""
    try:
        lines = job.errors.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    said = [line.removeprefix(ERROR) for line in lines if line.startswith(ERROR)]
    return said[-1] if said else f"see {job.errors}"
