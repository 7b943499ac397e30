"""The queue of a SLURM cluster, through submitit, an extra."""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import submitit
from submitit.slurm import slurm as sbatch

from cbet_jax.runs.atomic_write import write_json
from experiments.sweeps.jobs import SLURM, Submitted, training_of, uninterrupted
from experiments.sweeps.plan import SweepGroup, SweepJob
from experiments.sweeps.process import Training

NEVER = "resumed-by-itself"  # a file that is never there: the command needs no --resume
MOST_TIMEOUTS = 10**6  # of a job: it is put back into the queue each time
DEFAULTS: dict[str, Any] = {"job_name": "cbet", "time": 24 * 60}  # of a job; minutes
FLAG = "#SBATCH"  # begins a line of a job's header

type Parameters = Mapping[str, Any]  # of a job, by submitit's names: words and numbers


class SlurmQueue:
    """The queue of the cluster that this machine belongs to."""

    cluster = SLURM

    def __init__(self, folder: Path, parameters: Parameters) -> None:
        """Find the queue.

        Args:
            folder: where submitit keeps what it needs, and the jobs' output.
            parameters: of each job.

        Raises:
            RuntimeError: there is no SLURM here. ValueError: it has no such parameter.
        """
        self._folder = folder
        self._executor = submitit.SlurmExecutor(folder, max_num_timeout=MOST_TIMEOUTS)
        self._executor.update_parameters(**{**DEFAULTS, **parameters})

    def submit(self, group: SweepGroup, gpus: str | None = None) -> Submitted:
        """Submit a job that trains a group of runs; its GPUs are those that SLURM gives it."""
        answer = self._answer()
        handle = self._submit(training_of(group, answer, parent=None))
        for job in group.jobs:
            content = {"job": handle.job_id, "answer": answer.name}
            write_json(self._folder / f"{job}.job", content)
        return _submitted(handle, answer)

    def submit_command(self, module: str, words: Sequence[str]) -> str:
        """Submit a command that continues by itself when it is started again.

        Args:
            module: the command.
            words: of its command line.

        Returns:
            The job's number.
        """
        runs = [(words, self._folder / NEVER)]
        number: str = self._submit(Training(module, runs, self._answer(), parent=None)).job_id
        return number

    def under_way(self, job: SweepJob) -> Submitted | None:
        """Return the job that an earlier sweep has left in the queue for a run, if it is there."""
        path = self._folder / f"{job}.job"
        try:
            content = json.loads(path.read_text())
            name, answer = str(content["job"]), str(content["answer"])
        except (OSError, ValueError, KeyError, TypeError):  # none, an older sweep's, or damaged
            return None
        handle: Any = submitit.SlurmJob(self._folder, name)
        is_over = handle.done(force_check=True)
        return None if is_over else _submitted(handle, self._folder / Path(answer).name)

    def leave(self, jobs: Iterable[Submitted]) -> None:
        """Leave the jobs in the queue."""

    def _answer(self) -> Path:
        return self._folder / f"{uuid.uuid4().hex}.json"

    def _submit(self, training: Training) -> Any:
        with uninterrupted():
            return self._executor.submit(training)


def header(folder: Path, parameters: Parameters) -> list[str]:
    """Return the lines of a job's script that say what SLURM is asked for; writes nothing.

    Args:
        folder: of the jobs' output.
        parameters: of each job.

    Raises:
        ValueError: there is no such parameter.
    """
    unknown = sorted({*parameters} - submitit.SlurmExecutor._valid_parameters())
    if unknown:
        raise ValueError(f"submitit has no parameter {', '.join(unknown)}")
    script = sbatch._make_sbatch_string("", folder, **{**DEFAULTS, **parameters})
    return [line for line in script.splitlines() if line.startswith(FLAG)]


def _submitted(handle: Any, answer: Path) -> Submitted:
    paths = handle.paths
    return Submitted(str(handle.job_id), handle.done, answer, paths.stderr, paths.stdout)
