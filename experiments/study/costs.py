"""How long a study takes and how much disk it fills, from what was last measured on this machine.

Runs keep their speed in `manifest.json`; a study keeps that of its evaluations in
`evaluation/measured.json`. What ran on another machine, or with networks or worlds of other sizes,
is no measure.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cbet_jax.config import RunSettings
from cbet_jax.intrinsic import COUNT_REWARDS
from cbet_jax.runs import manifest
from cbet_jax.runs.atomic_write import write_json
from cbet_jax.runs.directory import UNREADABLE, RunDirectory, RunDirectoryError
from experiments.study.plan import EVALUATION, StudyJob, reached

MACHINE = ("platform", "cpu_count", "backend", "devices")  # of a manifest
RUNS = ("*", "*/runs/*", "*/*/*/*")  # places of runs beside a study: alone, in sweeps, in studies
MEASURED = "measured.json"


class Speed(NamedTuple):
    """What a run has measured."""

    run: Path
    settings: RunSettings
    frames_per_second: float  # of all its seeds together
    compile_seconds: float
    seed_bytes: float  # of its directory, for each seed
    at: str  # when


class Evaluations(NamedTuple):
    """What evaluations have measured."""

    table_seconds: float  # of one world with one policy of each seed
    at: str  # when


class Cost(NamedTuple):
    """What is left to do of one stage of a study."""

    jobs: int
    frames: int  # of all seeds together
    seconds: float  # of what was measured
    unmeasured: int  # jobs left whose speed was not


class Costs:
    """What a study costs on this machine.

    Args:
        root: the study's directory. Its runs, and those beside it, are what was measured.
    """

    def __init__(self, root: Path) -> None:
        self._here = _machine(manifest.describe(()))
        self._speeds = sorted(self._find_speeds(root), key=lambda speed: speed.at)
        self._evaluations = self._find_evaluations(root)
        self.used: dict[str, Speed] = {}  # method -> where its speed was measured
        self.unmeasured: set[str] = set()  # methods whose speed is taken to be another's

    def speed(self, job: StudyJob) -> Speed | None:
        """Return the newest speed of a run of the same sizes; None where none was measured.

        It is one of the same method, or else the slowest of its kind: of the methods that need
        nothing but visit counts, or of the others. Or else it is the slowest of all.
        """
        method = job.settings.train.method
        newest = {
            one.settings.train.method: one
            for one in self._speeds
            if _sizes(one.settings) == _sizes(job.settings)
        }
        if method in newest:
            self.used[method] = newest[method]
            return newest[method]
        if newest:
            self.unmeasured.add(method)
        only_counts = method in COUNT_REWARDS
        kind = [one for name, one in newest.items() if (name in COUNT_REWARDS) == only_counts]
        return min(kind or newest.values(), key=lambda one: one.frames_per_second, default=None)

    def left(self, jobs: Sequence[StudyJob]) -> Cost:
        """Return what is left to do of some jobs of one stage."""
        new = [_new_frames(job) for job in jobs]
        each = [self._seconds(job, frames) for job, frames in zip(jobs, new, strict=True)]
        known = [seconds for seconds in each if seconds is not None]
        left = sum(not job.done for job in jobs)
        return Cost(left, sum(new), sum(known), len(each) - len(known))

    def bytes(self, jobs: Sequence[StudyJob]) -> float:
        """Return the bytes on disk of all runs among some jobs whose size was measured."""
        runs = [(job, self.speed(job)) for job in jobs if job.stage != EVALUATION]
        return sum(speed.seed_bytes * job.settings.seeds for job, speed in runs if speed)

    def _seconds(self, job: StudyJob, new: int) -> float | None:
        """Return how long a job takes that plays some new frames; None: not measured."""
        if job.stage == EVALUATION:
            tables = sum(not job.table(world).exists() for world in job.worlds)
            if tables and self._evaluations is None:
                return None
            return tables * self._evaluations.table_seconds if self._evaluations else 0.0
        speed = self.speed(job)
        if not new:
            return 0.0
        return new / speed.frames_per_second + speed.compile_seconds if speed else None

    def _find_speeds(self, root: Path) -> Iterator[Speed]:
        for place in RUNS:
            for path in root.absolute().parent.glob(f"{place}/manifest.json"):
                if speed := self._speed_of(path):
                    yield speed

    def _speed_of(self, path: Path) -> Speed | None:
        """Return the newest speed of a run, None where it has none or cannot be read."""
        try:
            sessions = json.loads(path.read_text())["sessions"]
            known = [s for s in sessions if s.get("frames_per_second") and self._is_here(s)]
            if not known:
                return None
            newest, settings = known[-1], RunDirectory(path.parent).settings()
            return Speed(
                path.parent,
                settings,
                float(newest["frames_per_second"]) * newest.get("runs_together", 1),
                float(newest.get("compile_seconds", 0.0)),
                _bytes_of(path.parent) / settings.seeds,
                str(newest["last_checkpoint"]),
            )
        except (*UNREADABLE, RunDirectoryError):
            return None

    def _find_evaluations(self, root: Path) -> Evaluations | None:
        found = []
        for path in root.absolute().parent.glob(f"*/{EVALUATION}/{MEASURED}"):
            try:
                measured = json.loads(path.read_text())
                if self._is_here(measured):
                    found.append(Evaluations(float(measured["table_seconds"]), str(measured["at"])))
            except UNREADABLE:
                continue
        return max(found, key=lambda one: one.at, default=None)

    def _is_here(self, session: dict[str, Any]) -> bool:
        return _machine(session) == self._here


def record_evaluations(root: Path, seconds: float, tables: int) -> None:
    """Keep how long evaluations took.

    Args:
        root: the study's directory.
        seconds: that they took.
        tables: that they wrote, each of one world with one policy of each seed.
    """
    if not tables:  # another process has written the last of them
        return
    here = _machine(manifest.describe(()))
    measured = {"table_seconds": round(seconds / tables, 3), "at": manifest.now()}
    write_json(root / EVALUATION / MEASURED, measured | here)


def _new_frames(job: StudyJob) -> int:
    """Return the frames that are left to play, of all seeds together."""
    if job.stage == EVALUATION:
        return 0
    return max(job.now - reached(job.root), 0) * job.settings.seeds


def _machine(session: dict[str, Any]) -> dict[str, Any]:
    return {name: session.get(name) for name in MACHINE}


def _sizes(run: RunSettings) -> Any:
    """Return what the speed of a run depends on, beside its method and its worlds."""
    train = run.train
    return train.network, train.worlds, train.batch, train.unroll, run.habitat, bool(run.transfer)


def _bytes_of(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    paths = (Path(top) / name for top, _, names in os.walk(folder) for name in names)
    return sum(path.stat().st_size for path in paths)
