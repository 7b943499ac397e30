"""Run the jobs of a sweep: skip finished ones, and submit interrupted ones again."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console

from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.signals import Stop
from experiments.common import cli
from experiments.common.endings import NOT_FINITE
from experiments.common.refusals import NOT_WRITTEN
from experiments.sweeps import gpus
from experiments.sweeps.jobs import LOCAL, Queue, Submitted, last_error, status_of
from experiments.sweeps.plan import SweepGroup, SweepJob

FOR_GOOD = (
    cli.BAD_INPUT,
    NOT_FINITE,
    NOT_WRITTEN,
)  # exit statuses that a second try would not change
POLL_SECONDS = {LOCAL: 0.2}  # between two looks at the jobs; of a cluster:
CLUSTER_POLL_SECONDS = 5.0


class Running(NamedTuple):
    """A group of runs in the queue."""

    job: Submitted
    place: int  # which of those that run at once


class Sweep:
    """The runs of a sweep on their way, in groups that one program trains."""

    def __init__(
        self,
        groups: Sequence[SweepGroup],
        queue: Queue,
        parallel: int | None,
        tries: int,
        console: Console,
    ) -> None:
        """Find out what is left to do.

        Args:
            groups: the runs that are not done.
            queue: where they are submitted to.
            parallel: how many groups are in it at once (None: one here, all on a cluster).
            tries: how often a group is submitted that was lost on its way.
            console: shows progress.
        """
        self.failed: list[SweepJob] = []
        self._running: dict[SweepGroup, Running] = {}
        self._told: set[SweepGroup] = set()  # that they are waited for
        self._submitted: Counter[SweepGroup] = Counter()
        self._queue, self._tries, self._console = queue, tries, console
        found = {job: queue.under_way(job) for group in groups for job in group.jobs}
        free = (tuple(job for job in group.jobs if not found[job]) for group in groups)
        self._waiting = [SweepGroup(jobs) for jobs in free if jobs]
        there = {submitted.name: submitted for submitted in found.values() if submitted}
        for name, submitted in there.items():
            jobs = [job for job, its in found.items() if its and its.name == name]
            self._begin(SweepGroup(tuple(jobs)), submitted, "is in the queue still")
        everything = len(self._waiting) + len(self._running)
        self._parallel = parallel or (1 if queue.cluster == LOCAL else max(everything, 1))

    def run(self, stop: Stop) -> None:
        """Run all groups to their ends, or until it is asked to stop."""
        while (self._waiting or self._running) and not stop.signal:
            while len(self._running) < self._parallel and (group := self._next()):
                self._submit(group)
            for group, running in list(self._running.items()):
                if running.job.is_over():
                    del self._running[group]
                    self._end(group, running.job)
            time.sleep(POLL_SECONDS.get(self._queue.cluster, CLUSTER_POLL_SECONDS))
        self._queue.leave(running.job for running in self._running.values())

    def _next(self) -> SweepGroup | None:
        """Take the next group that no process trains which a killed sweep has left."""
        for group in self._waiting:
            if not any(RunDirectory(job.root).is_locked() for job in group.jobs):
                self._waiting.remove(group)
                return group
            if group not in self._told:
                self._told.add(group)
                self._say(f"{group} is still being trained by another process: waiting for it")
        return None

    def _submit(self, group: SweepGroup) -> None:
        how = "continues" if group.begun else "begins"
        job = self._queue.submit(group, gpus.of_place(self._free_place(), self._parallel))
        self._submitted[group] += 1
        self._begin(group, job, how)

    def _begin(self, group: SweepGroup, job: Submitted, how: str) -> None:
        self._running[group] = Running(job, self._free_place())
        self._say(f"{group} {how} (job {job.name}, which prints to {job.output})")

    def _free_place(self) -> int:
        taken = {running.place for running in self._running.values()}
        return min(set(range(len(taken) + 1)) - taken)

    def _end(self, group: SweepGroup, submitted: Submitted) -> None:
        status = status_of(submitted)
        left = SweepGroup(tuple(job for job in group.jobs if not job.done))
        for job in group.jobs:
            if job not in left.jobs:
                self._say(f"{job} is done")
        if not left.jobs:
            return
        if status in FOR_GOOD or self._submitted[group] >= self._tries:
            self.failed += left.jobs
            self._say(f"{left} has failed: {last_error(submitted)}")
        else:
            self._waiting.append(left)
            self._submitted[left] = self._submitted[group]
            self._say(f"{left} was interrupted")

    def _say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, highlight=False)
