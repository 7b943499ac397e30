"""The queue of a SLURM cluster, through submitit, an extra."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import submitit

from cbet_jax.config import SettingsError
from cbet_jax.runs.atomic_write import write_json
from cbet_jax.runs.reading import UnreadableError, read_json
from experiments.sweeps.jobs import Job
from experiments.sweeps.queues import Submitted, uninterrupted, work_of

CLUSTER = "slurm"  # as submitit calls it
JOBS = {"slurm": submitit.SlurmJob, "local": submitit.LocalJob}
MOST_TIMEOUTS = 10**6  # of a job: it is put back into the queue each time
DEFAULTS: dict[str, Any] = {"job_name": "cbet", "time": 24 * 60}  # of a job; minutes


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
        limits: dict[str, Any] = {"slurm_max_num_timeout": MOST_TIMEOUTS}
        named = {f"slurm_{name}": value for name, value in {**DEFAULTS, **parameters}.items()}
        try:
            self._executor = submitit.AutoExecutor(folder, cluster=CLUSTER, **limits)
            self._executor.update_parameters(**named)
        except (RuntimeError, ValueError, NameError) as error:
            raise SettingsError(str(error).partition("\n")[0]) from None

    def submit(self, jobs: Sequence[Job], place: int, places: int) -> Submitted:
        """Submit a process; SLURM gives it GPUs and cores."""
        answer = self._folder / f"{uuid.uuid4().hex}.json"
        with uninterrupted():
            handle = self._executor.submit(work_of(jobs, answer, parent=None))
        for job in jobs:
            write_json(self._record(job), {"job": handle.job_id, "answer": answer.name})
        return _submitted(handle, answer)

    def under_way(self, job: Job) -> Submitted | None:
        """Return the process that an earlier executor has left in the queue for a job, if any."""
        try:
            content = read_json(self._record(job))
            name, answer = str(content["job"]), str(content["answer"])
        except (UnreadableError, KeyError):  # it was not submitted, or is damaged
            return None
        handle: Any = JOBS[CLUSTER](self._folder, name)
        is_over = handle.done(force_check=True)
        return None if is_over else _submitted(handle, self._folder / Path(answer).name)

    def leave(self, submitted: Iterable[Submitted]) -> None:
        """Leave the jobs in the queue."""

    def _record(self, job: Job) -> Path:
        """Return the file that says which job of the cluster does a job."""
        return self._folder / f"{job.name.replace('/', ',')}.job"


def _submitted(handle: Any, answer: Path) -> Submitted:
    paths = handle.paths
    return Submitted(str(handle.job_id), handle.done, answer, paths.stderr, paths.stdout)
