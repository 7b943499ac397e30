"""Where jobs go: processes on this machine (`slurm.py` has the queue of a cluster)."""

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Protocol

from cbet_jax.config import SettingsError
from cbet_jax.runs.reading import UnreadableError, read_json
from experiments.common.commands import AND
from experiments.common.interrupts import uninterrupted
from experiments.sweeps import process
from experiments.sweeps.jobs import Job
from experiments.sweeps.process import CommandLine, Work

GPUS = "CUDA_VISIBLE_DEVICES"
NO_GPUS = ("", "-1")  # how it says that there are none
ERROR = "error: "  # begins the line in which a command says why it failed


class Submitted(NamedTuple):
    """A process in a queue."""

    name: str  # in the queue
    is_over: Callable[[], bool]
    answer: Path  # the file that holds its exit status once it is over
    errors: Path  # the file that holds what it has written to standard error
    output: Path | None  # the same, of standard output (None: it prints to the terminal)


class Queue(Protocol):
    """What an executor needs of the place where jobs run."""

    poll_seconds: float  # between two looks at the jobs
    places: int | None  # processes at once, if the user names no number (None: any number)

    def submit(self, jobs: Sequence[Job], place: int, places: int) -> Submitted:
        """Submit one process for some jobs, to one of the places where processes run at once."""

    def under_way(self, job: Job) -> Submitted | None:
        """Return the process that an earlier executor has left in the queue for a job, if any."""

    def leave(self, submitted: Iterable[Submitted]) -> None:
        """Let those processes save and end that end with the executor."""


class LocalQueue:
    """Processes on this machine, which start at once and end with the executor."""

    poll_seconds = 0.2
    places: int | None = 1

    def __init__(self, folder: Path) -> None:
        """Note the folder of the processes' output and exit statuses."""
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def submit(self, jobs: Sequence[Job], place: int, places: int) -> Submitted:
        """Start a process; several at once have GPUs and cores of their own."""
        name = uuid.uuid4().hex[:8]
        work, answer, output, errors = (
            self._folder / f"{name}{suffix}" for suffix in (".json", ".end", ".out", ".err")
        )
        self._folder.mkdir(parents=True, exist_ok=True)
        work.write_text(work_of(jobs, answer, os.getpid()).to_json())
        program = [sys.executable, "-m", process.__name__, str(work)]
        program += [",".join(map(str, cores_of(place, places)))]
        variables = os.environ | {GPUS: gpus} if (gpus := gpus_of(place, places)) else None
        with ExitStack() as files:
            files.enter_context(uninterrupted())
            err = files.enter_context(open(errors, "w"))
            out = files.enter_context(open(output, "w")) if places > 1 else None
            started = subprocess.Popen(program, stdout=out, stderr=err, env=variables)
        self._processes[name] = started
        is_over = lambda: started.poll() is not None  # noqa: E731
        return Submitted(name, is_over, answer, errors, output if places > 1 else None)

    def under_way(self, job: Job) -> None:
        """Return None: no process outlives its executor."""

    def leave(self, submitted: Iterable[Submitted]) -> None:
        """Let processes save, and wait for their ends."""
        left = [self._processes[each.name] for each in submitted]
        for process_left in left:
            process_left.terminate()
        for process_left in left:
            process_left.wait()


def work_of(jobs: Sequence[Job], answer: Path, parent: int | None) -> Work:
    """Return what one process does.

    Args:
        jobs: of one command.
        answer: the file that its exit status goes to.
        parent: the process on this machine without which it ends (None: it needs none).
    """
    joints = ((), *[(AND,)] * (len(jobs) - 1))
    lines = [
        CommandLine((*joint, *job.beginning), (*joint, *job.continuing), str(job.config))
        for joint, job in zip(joints, jobs, strict=True)
    ]
    return Work(jobs[0].module, lines, str(answer), parent)


def refuse_too_few_gpus(processes: int) -> None:
    """Check that each of several processes can have a GPU by itself, if some are named.

    Raises:
        SettingsError: it cannot; two runs on one GPU would each take most of its memory.
    """
    named = os.environ.get(GPUS)
    number = processes if named is None or named in NO_GPUS else len(named.split(","))
    if number < processes:
        raise SettingsError(
            f"parallel must be at most {number}, not {processes}: {GPUS}={named} has a GPU for "
            "no more processes"
        )


def gpus_of(place: int, places: int) -> str | None:
    """Return which of the GPUs that this process may use belong to one of its places.

    Args:
        place: from 0 on.
        places: how many processes run at once.

    Returns:
        Their names, as the environment's variable has them; None for all that there are.
    """
    named = os.environ.get(GPUS)
    if named is None or named in NO_GPUS or places == 1:
        return named
    return ",".join(named.split(",")[place::places])


def cores_of(place: int, places: int) -> list[int]:
    """Return the cores of one of the places; none where the system does not say which there are.

    Processes with cores of their own play more frames than processes that share all of them. Each
    has the same number: the order in which a run adds numbers depends on it.
    """
    if places == 1 or not hasattr(os, "sched_getaffinity"):
        return []
    cores = sorted(os.sched_getaffinity(0))
    each = len(cores) // places
    return cores[place * each : (place + 1) * each] or [cores[place % len(cores)]]


def status_of(submitted: Submitted) -> int | None:
    """Return the exit status of a process that is over; None: it was lost."""
    try:
        status = read_json(submitted.answer).get("status")
    except UnreadableError:
        return None
    return status if isinstance(status, int) else None


def last_error(submitted: Submitted) -> str:
    """Return the line in which a process has said why it failed, or where it may have."""
    try:
        lines = submitted.errors.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    said = [line.removeprefix(ERROR) for line in lines if line.startswith(ERROR)]
    return said[-1] if said else f"see {submitted.errors}"
