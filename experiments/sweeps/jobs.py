"""Where a sweep's jobs go: this machine, or a SLURM cluster, through submitit."""

import signal
import time
from pathlib import Path
from typing import Any

import submitit

from experiments.common.training import AND
from experiments.sweeps.gpus import VARIABLE
from experiments.sweeps.plan import SweepGroup, SweepJob
from experiments.sweeps.process import Training

LOCAL, SLURM = "local", "slurm"
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

    def submit(self, group: SweepGroup, gpus: str | None) -> Any:
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
        training = Training(first.module, runs, environment)
        # Ctrl-C is for the sweep and for the training itself, not for what is in between.
        interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            handle = self._executor.submit(training)
        finally:
            signal.signal(signal.SIGINT, interrupted)
        for job in group.jobs:
            (self._folder / f"{job}.job").write_text(handle.job_id)
        return handle

    def under_way(self, job: SweepJob) -> Any:
        """Return the job that an earlier sweep has left in the queue for a run, if it is there."""
        path = self._folder / f"{job}.job"
        if self.cluster == LOCAL or not path.exists():
            return None
        handle: Any = submitit.SlurmJob(self._folder, path.read_text())
        return None if handle.done(force_check=True) else handle


def end(handle: Any) -> None:
    """Let a job on this machine save and end."""
    process = handle._process  # submitit's own way leaves no time to save
    while process.poll() is None:
        process.terminate()  # which a job that has just begun may not hear
        time.sleep(1.0)


def status_of(handle: Any) -> int | None:
    """Return the exit status of a job that is over; None: it was lost."""
    tasks = [handle.task(number) for number in range(handle.num_tasks)]
    if not all(task.paths.result_pickle.exists() for task in tasks):
        return None
    try:
        return max(task.result() for task in tasks)
    except (submitit.core.utils.UncompletedJobError, submitit.core.utils.FailedJobError):
        return None


def last_error(handle: Any) -> str:
    """Return the line in which a job has said why it failed, or where it may have."""
    lines = (handle.stderr() or "").splitlines()
    said = [line.removeprefix(ERROR) for line in lines if line.startswith(ERROR)]
    return said[-1] if said else f"see {handle.paths.stderr}"
