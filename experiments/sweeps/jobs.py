"""Where a sweep's jobs go: this machine, or a SLURM cluster, through submitit."""

import json
import os
import signal
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import submitit

from cbet_jax.runs.json_files import write_json
from experiments.common.training import AND
from experiments.sweeps.gpus import VARIABLE
from experiments.sweeps.plan import SweepGroup, SweepJob
from experiments.sweeps.process import Training

LOCAL, SLURM = "local", "slurm"
NEVER = "resumed-by-itself"  # a file that is never there: the command needs no --resume
UNLIMITED = 10 * 365 * 24 * 60  # timeouts of a job, and minutes until one
DEFAULT_TIME_MINUTES = 24 * 60  # that SLURM is asked for
ERROR = "error: "  # begins the line in which a command says why it failed


class Queue:
    """Where jobs are submitted to: this machine, or a SLURM cluster."""

    def __init__(self, cluster: str, folder: Path, parameters: dict[str, str | int]) -> None:
        """Find the queue.

        Args:
            cluster: `LOCAL` or `SLURM`.
            folder: where submitit keeps what it needs, and the jobs' output.
            parameters: of SLURM, by submitit's names.

        Raises:
            RuntimeError: there is no SLURM here. ValueError: it has no such parameter.
        """
        self.cluster = cluster
        self._folder = folder
        self._executor: Any
        if cluster == SLURM:
            self._executor = submitit.SlurmExecutor(folder, max_num_timeout=UNLIMITED)
            self._executor.update_parameters(
                **{"job_name": "cbet", "time": DEFAULT_TIME_MINUTES, **parameters}
            )
        else:
            self._executor = submitit.LocalExecutor(folder, max_num_timeout=UNLIMITED)
            self._executor.update_parameters(timeout_min=UNLIMITED)

    def submit(self, group: SweepGroup, gpus: str | None) -> "Submitted":
        """Submit a job; on this machine it starts at once.

        Args:
            group: the runs that it trains.
            gpus: numbers of those that it sees on this machine (None: all).
        """
        # submitit hides all GPUs from local jobs that do not ask it for some.
        environment = {VARIABLE: gpus} if self.cluster == LOCAL else {}
        first, *others = group.jobs
        runs = [(first.words, first.config)]
        runs += [((AND, *job.words), job.config) for job in others]
        answer = self._folder / f"{uuid.uuid4().hex}.json"
        parent = os.getpid() if self.cluster == LOCAL else None
        handle = self._submit(Training(first.module, runs, environment, answer, parent))
        for job in group.jobs:
            content = {"job": handle.job_id, "answer": answer.name}
            write_json(self._folder / f"{job}.job", content)
        return Submitted(handle, answer)

    def submit_command(self, module: str, words: Sequence[str]) -> str:
        """Submit a command that continues by itself when it is started again.

        Args:
            module: the command.
            words: of its command line.

        Returns:
            The job's number.
        """
        answer = self._folder / f"{uuid.uuid4().hex}.json"
        training = Training(module, [(words, self._folder / NEVER)], {}, answer, None)
        number: str = self._submit(training).job_id
        return number

    def _submit(self, training: Training) -> Any:
        # Ctrl-C is for the sweep and for the training itself, not for what is in between.
        interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return self._executor.submit(training)
        finally:
            signal.signal(signal.SIGINT, interrupted)

    def under_way(self, job: SweepJob) -> "Submitted | None":
        """Return the job that an earlier sweep has left in the queue for a run, if it is there."""
        path = self._folder / f"{job}.job"
        if self.cluster == LOCAL or not path.exists():
            return None
        try:
            content = json.loads(path.read_text())
            name, answer = str(content["job"]), str(content["answer"])
        except (ValueError, KeyError, TypeError):  # an older sweep's, or damaged
            return None
        handle: Any = submitit.SlurmJob(self._folder, name)
        is_over = handle.done(force_check=True)
        return None if is_over else Submitted(handle, self._folder / Path(answer).name)


class Submitted(NamedTuple):
    """A job in the queue."""

    handle: Any  # submitit's
    answer: Path  # which holds its exit status once it is over; submitit's own is a pickle

    @property
    def name(self) -> str:
        """Its name in the queue."""
        return str(self.handle.job_id)


def end(job: Submitted) -> None:
    """Let a job on this machine save and end."""
    process = job.handle._process  # submitit's own way leaves no time to save
    while process.poll() is None:
        process.terminate()  # which a job that has just begun may not hear
        time.sleep(1.0)


def status_of(job: Submitted) -> int | None:
    """Return the exit status of a job that is over; None: it was lost."""
    try:
        status = json.loads(job.answer.read_text())["status"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return status if isinstance(status, int) else None


def last_error(job: Submitted) -> str:
    """Return the line in which a job has said why it failed, or where it may have."""
    lines = (job.handle.stderr() or "").splitlines()
    said = [line.removeprefix(ERROR) for line in lines if line.startswith(ERROR)]
    return said[-1] if said else f"see {job.handle.paths.stderr}"
