"""The queue of a SLURM cluster, through submitit, an extra.

Which jobs are over, `squeue` says: a cluster need not keep accounts for `sacct`, and a job that it
preempts may have ended in the middle, and be in its queue again.
"""

import io
import math
import os
import subprocess
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr
from functools import partial
from pathlib import Path
from typing import Any

import submitit

from cbet_jax.config import SettingsError
from cbet_jax.runs.atomic_write import write_json
from cbet_jax.runs.reading import UnreadableError, read_json
from experiments.common.interrupts import uninterrupted
from experiments.common.screen import Screen, say
from experiments.sweeps.jobs import Job
from experiments.sweeps.queues import Submitted, work_of

CLUSTER = "slurm"  # as submitit calls it
MOST_TIMEOUTS = 10**6  # of a job: it is put back into the queue each time
DEFAULTS: dict[str, Any] = {"job_name": "cbet", "time": 24 * 60}  # of a job; minutes
QUEUED = ("squeue", "--noheader", "--format=%i", "--user")  # prints jobs that are not over
SAME_SECONDS = 1.0  # one answer is for all jobs
MOST_SECONDS = 60  # until an answer


class SlurmQueue:
    """The queue of the cluster that this machine belongs to."""

    poll_seconds = 5.0
    places: int | None = None

    def __init__(self, folder: Path, parameters: Mapping[str, str | int]) -> None:
        """Find the queue.

        Args:
            folder: where submitit keeps what it needs, and the jobs' output.
            parameters: of each job, by submitit's names.

        Raises:
            SettingsError: there is no SLURM here, or it has no such parameter.
        """
        self._folder = folder
        self._queued: set[str] | None = None  # the last answer
        self._asked_at = -math.inf
        self._told = False  # that there is no answer
        limits: dict[str, Any] = {"slurm_max_num_timeout": MOST_TIMEOUTS}
        named = {f"slurm_{name}": value for name, value in {**DEFAULTS, **parameters}.items()}
        try:
            self._executor = submitit.AutoExecutor(folder, cluster=CLUSTER, **limits)
            self._executor.update_parameters(**named)
        except (RuntimeError, ValueError, NameError, TypeError) as error:
            raise SettingsError(str(error).partition("\n")[0]) from None

    def submit(self, jobs: Sequence[Job], place: int, places: int) -> Submitted:
        """Submit a process; SLURM gives it GPUs and cores.

        Raises:
            SettingsError: SLURM does not take it.
        """
        answer = self._folder / f"{uuid.uuid4().hex}.json"
        try:
            with uninterrupted(), redirect_stderr(io.StringIO()):  # submitit prints all of it
                handle = self._executor.submit(work_of(jobs, answer, parent=None))
        except RuntimeError as error:
            raise SettingsError(_in_a_line(str(error))) from None
        self._asked_at = -math.inf  # it was not in an earlier answer
        for job in jobs:
            write_json(self._record(job), {"job": handle.job_id, "answer": answer.name})
        return self._submitted(handle.job_id, answer)

    def under_way(self, job: Job) -> Submitted | None:
        """Return the process that an earlier executor has left in the queue for a job, if any."""
        try:
            content = read_json(self._record(job))
            name, answer = str(content["job"]), str(content["answer"])
        except (UnreadableError, KeyError):  # it was not submitted, or is damaged
            return None
        submitted = self._submitted(name, self._folder / Path(answer).name)
        return None if submitted.is_over() else submitted

    def leave(self, submitted: Iterable[Submitted]) -> None:
        """Leave the jobs in the queue."""

    def _record(self, job: Job) -> Path:
        """Return the file that says which job of the cluster does a job."""
        return self._folder / f"{job.name.replace('/', ',')}.job"

    def _submitted(self, name: str, answer: Path) -> Submitted:
        paths = submitit.SlurmJob(self._folder, name).paths
        return Submitted(name, partial(self._is_over, name), answer, paths.stderr, paths.stdout)

    def _is_over(self, name: str) -> bool:
        """Return whether a job has left the queue; until SLURM answers, it may be in there."""
        if time.monotonic() >= self._asked_at + SAME_SECONDS:
            self._asked_at = time.monotonic()
            self._queued = self._ask()
        return self._queued is not None and name not in self._queued

    def _ask(self) -> set[str] | None:
        """Return the user's jobs that wait, run or are ending; None: SLURM does not say."""
        try:
            # The user's own choice of what squeue shows would hide jobs.
            chosen = {name: x for name, x in os.environ.items() if not name.startswith("SQUEUE_")}
            run = partial(subprocess.run, env=chosen, text=True, timeout=MOST_SECONDS)
            asked = run((*QUEUED, str(os.getuid())), check=True, capture_output=True)
        except (OSError, subprocess.SubprocessError) as error:
            if not self._told:
                self._told = True
                why = _in_a_line(getattr(error, "stderr", None) or str(error))
                say(Screen(), f"waiting for squeue to say which jobs are over: {why}")
            return None
        return set(asked.stdout.split())


def _in_a_line(said: str) -> str:
    """Return what a program of SLURM has said, its name once."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    first, *others = lines or [said]
    return "; ".join([first, *(line.removeprefix("sbatch: error: ") for line in others)])
