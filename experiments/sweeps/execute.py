"""Do the jobs of a plan: skip finished ones, and submit interrupted ones again.

Several executors may share a plan: the first to claim a job does it, and the others wait.
"""

import fcntl
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from cbet_jax.runs import manifest
from cbet_jax.runs.atomic_write import open_own
from cbet_jax.runs.directory import RunDirectory, RunInUseError
from cbet_jax.runs.signals import Stop
from experiments.common import cli
from experiments.common.refusals import NOT_FINITE, NOT_WRITTEN
from experiments.common.screen import say
from experiments.sweeps.jobs import Job, Policies
from experiments.sweeps.queues import Queue, Submitted, last_error, status_of

FOR_GOOD = (cli.BAD_INPUT, NOT_FINITE, NOT_WRITTEN)  # statuses that a second try would not change
WAIT_SECONDS = 5.0  # for other processes, between two looks


@dataclass
class Running:
    """A process that does some jobs."""

    jobs: list[Job]
    submitted: Submitted
    place: int  # its index among the processes that run at once
    claims: ExitStack = field(default_factory=ExitStack)  # locks against other executors


class Executor:
    """The jobs of a plan on their way."""

    def __init__(
        self,
        jobs: Iterable[Job],
        queue: Queue,
        folder: Path,
        console: Console,
        *,
        parallel: int | None = None,
        together: int | None = None,
        tries: int = 10,
    ) -> None:
        """Note what is left to do.

        Args:
            jobs: of the plan, in the order in which they are begun.
            queue: where they are submitted to.
            folder: where executors of this plan keep each other away from jobs.
            console: shows progress.
            parallel: processes at once (None: as many as the queue has places).
            together: jobs of one process, at most (None: any number).
            tries: how often a job is submitted that was lost on its way.
        """
        self.failed: dict[str, str] = {}  # a job's name -> why
        self._left = [job for job in jobs if not job.done]  # in order; also those that run
        self._running: list[Running] = []
        self._submitted: Counter[str] = Counter()
        self._alone: set[str] = set()  # jobs that no process does beside others
        self._told: set[str] = set()
        self._queue, self._folder, self._console = queue, folder, console
        self._parallel = parallel or queue.places or max(len(self._left), 1)
        self._together, self._tries = together, tries

    def run(self, stop: Stop) -> None:
        """Do all jobs, or as many as can be done until it is asked to stop."""
        while self._left and not stop.signal:
            while len(self._running) < self._parallel and self._begin_next():
                pass
            ended = [running for running in self._running if running.submitted.is_over()]
            for running in ended:
                self._running.remove(running)
                with running.claims:
                    self._end(running)
            if self._left and not ended:
                time.sleep(self._queue.poll_seconds if self._running else WAIT_SECONDS)
        self._queue.leave(running.submitted for running in self._running)
        for running in self._running:
            running.claims.close()

    def _begin_next(self) -> bool:
        """Begin the next job that can be, with others that one process can do beside it."""
        group: list[Job] = []
        submitted: Submitted | None = None  # their process, if it is in the queue still
        with ExitStack() as claims:
            for job in self._free_jobs():
                if group and (self._is_alone(group[0]) or len(group) == self._together):
                    break
                if group and (self._is_alone(job) or job.alike != group[0].alike):
                    continue
                claim = ExitStack()
                try:
                    claim.enter_context(self._claim(job.name, job.root))
                except RunInUseError:
                    self._say_once(f"{job.name} is being done by another process: waiting for it")
                    continue
                found = self._queue.under_way(job)
                if group and _name_of(found) != _name_of(submitted):
                    claim.close()
                    continue
                claims.enter_context(claim)
                group.append(job)
                submitted = found
            if submitted is not None:
                how = f"is in the queue still (job {submitted.name})"
                self._start(group, submitted, claims.pop_all(), how)
            elif group:
                self._submit(group, claims.pop_all())
        return bool(group)

    def _is_alone(self, job: Job) -> bool:
        return job.alike is None or job.name in self._alone

    def _free_jobs(self) -> Iterator[Job]:
        """Yield the jobs that can be begun, unless another executor does them."""
        taken = {job.name for running in self._running for job in running.jobs}
        for job in list(self._left):
            if job.name in taken:
                continue
            if job.done:  # by another executor
                self._left.remove(job)
            elif job.ready:
                yield job
            elif reason := self._lacking(job):
                self._fail(job, f"left out: {reason}")

    def _lacking(self, job: Job) -> str:
        """Return why the policies that a job needs will never be there ("": they may come)."""
        needs = job.needs
        assert needs is not None
        if needs.job in self.failed:
            return f"{needs.job} has failed"
        if any(other.name == needs.job for other in self._left) or self._is_busy(needs):
            return ""
        if needs.are_there:  # of a process that has just saved them
            return ""
        if manifest.diverged(RunDirectory(needs.run).manifest):
            return f"{needs.job} has diverged"
        return f"{needs.run} holds no policies after {needs.frames:,} frames"

    def _submit(self, jobs: list[Job], claims: ExitStack) -> None:
        how = "continues" if any(job.config.exists() for job in jobs) else "begins"
        for job in jobs:
            self._submitted[job.name] += 1
        submitted = self._queue.submit(jobs, self._free_place(), self._parallel)
        where = f" (job {submitted.name}, which prints to {submitted.output})"
        self._start(jobs, submitted, claims, how + (where if submitted.output else ""))

    def _start(self, jobs: list[Job], submitted: Submitted, claims: ExitStack, how: str) -> None:
        self._running.append(Running(jobs, submitted, self._free_place(), claims))
        self._say(f"{names_of(jobs)} {how}")

    def _free_place(self) -> int:
        taken = {running.place for running in self._running}
        return min(set(range(len(taken) + 1)) - taken)

    def _end(self, running: Running) -> None:
        status = status_of(running.submitted)
        for job in running.jobs:
            if job.done:
                self._left.remove(job)
                self._say(f"{job.name} is done")
            elif RunDirectory(job.root).is_locked():
                self._say(f"{job.name} is being done by another process: waiting for it")
            elif len(running.jobs) > 1 and status in (cli.BAD_INPUT, NOT_WRITTEN):
                self._alone.add(job.name)
                self._say(f"{job.name} is tried alone: {last_error(running.submitted)}")
            elif status in FOR_GOOD or self._submitted[job.name] >= self._tries:
                self._fail(job, last_error(running.submitted))
            else:
                self._say(f"{job.name} was interrupted")

    def _fail(self, job: Job, reason: str) -> None:
        self._left.remove(job)
        self.failed[job.name] = reason
        self._say(f"{job.name} has failed: {reason}")

    @contextmanager
    def _claim(self, name: str, root: Path) -> Iterator[None]:
        """Keep other executors from a job; the system drops the claim with this process.

        Raises:
            RunInUseError: another process does it.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        with os.fdopen(open_own(self._folder / f"{name.replace('/', ',')}.lock")) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunInUseError(name) from None
            if RunDirectory(root).is_locked():  # by what a killed executor has left
                raise RunInUseError(name)
            yield

    def _is_busy(self, needs: Policies) -> bool:
        """Return whether another executor does the job that saves some policies."""
        try:
            with self._claim(needs.job, needs.run):
                return False
        except RunInUseError:
            return True

    def _say_once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._say(line)

    def _say(self, line: str) -> None:
        say(self._console, line)


def _name_of(submitted: Submitted | None) -> str:
    return submitted.name if submitted else ""


def names_of(jobs: Sequence[Job]) -> str:
    """Return the name of a job, or the first and the last of several."""
    first, *others = (job.name for job in jobs)
    return f"{first} to {others[-1]} ({len(jobs)} jobs)" if others else first
