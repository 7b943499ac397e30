"""Run the jobs of a sweep: skip finished ones, and submit interrupted ones again."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.console import Console

from cbet_jax.runs.signals import Stop
from experiments.common import cli
from experiments.common.training import NOT_FINITE
from experiments.sweeps import gpus
from experiments.sweeps.jobs import LOCAL, Queue, end, last_error, status_of
from experiments.sweeps.plan import SweepJob

FOR_GOOD = (cli.BAD_INPUT, NOT_FINITE)  # exit statuses that a second try would not change
POLL_SECONDS = {LOCAL: 0.2}  # between two looks at the jobs; of a cluster:
CLUSTER_POLL_SECONDS = 5.0


class Running(NamedTuple):
    """A job in the queue."""

    handle: Any  # submitit's
    place: int  # which of those that run at once


class Sweep:
    """The jobs of a sweep on their way."""

    def __init__(
        self, jobs: Sequence[SweepJob], queue: Queue, parallel: int, tries: int, console: Console
    ) -> None:
        """Find out what is left to do.

        Args:
            jobs: of the sweep.
            queue: where they are submitted to.
            parallel: how many are in it at once.
            tries: how often a job is submitted that was lost on its way.
            console: shows progress.
        """
        self.jobs = [job for job in jobs if not job.done]
        self.failed: list[SweepJob] = []
        self._waiting = list(self.jobs)
        self._running: dict[SweepJob, Running] = {}
        self._submitted: Counter[SweepJob] = Counter()
        self._queue, self._parallel, self._tries = queue, parallel, tries
        self._console = console
        self._say(f"{len(jobs)} runs, {len(jobs) - len(self.jobs)} of them done")
        for job in self.jobs:
            if handle := queue.under_way(job):
                self._begin(job, handle, "is in the queue still")

    def run(self, stop: Stop) -> None:
        """Run all jobs to their ends, or until it is asked to stop."""
        while (self._waiting or self._running) and not stop.signal:
            while self._waiting and len(self._running) < self._parallel:
                self._submit(self._waiting[0])
            for job, running in list(self._running.items()):
                if running.handle.done():
                    del self._running[job]
                    self._end(job, running.handle)
            time.sleep(POLL_SECONDS.get(self._queue.cluster, CLUSTER_POLL_SECONDS))
        if self._queue.cluster == LOCAL:
            for running in self._running.values():
                end(running.handle)

    def _submit(self, job: SweepJob) -> None:
        how = "continues" if job.begun else "begins"
        handle = self._queue.submit(job, gpus.of_place(self._free_place(), self._parallel))
        self._submitted[job] += 1
        self._begin(job, handle, how)

    def _begin(self, job: SweepJob, handle: Any, how: str) -> None:
        self._running[job] = Running(handle, self._free_place())
        self._waiting.remove(job)
        self._say(f"{job} {how} (job {handle.job_id})")

    def _free_place(self) -> int:
        taken = {running.place for running in self._running.values()}
        return min(set(range(len(taken) + 1)) - taken)

    def _end(self, job: SweepJob, handle: Any) -> None:
        status = status_of(handle)
        if job.done:
            self._say(f"{job} is done")
        elif status in FOR_GOOD or self._submitted[job] >= self._tries:
            self.failed.append(job)
            self._say(f"{job} has failed: {last_error(handle)}")
        else:
            self._waiting.append(job)
            self._say(f"{job} was interrupted")

    def _say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, highlight=False)
