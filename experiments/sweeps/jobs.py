"""Jobs: commands that each fill one directory, and that may need the policies of another job.

A job is done if its files are there. Nothing else records it, so a plan of jobs continues from
wherever it was stopped.
"""

import contextlib
import copy
import importlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from cbet_jax import own_code
from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.runs import manifest
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError, checkpoints, frames_of
from cbet_jax.runs.reading import UnreadableError, read_table
from experiments.common import opening
from experiments.common.training_options import TrainingOptions

COMMANDS = {  # that train
    "pretrain": "experiments.minigrid_pretrain",
    "tabula_rasa": "experiments.minigrid_tabula_rasa",
    "transfer": "experiments.minigrid_transfer",
    "habitat": "experiments.habitat_pretrain",
}
EVALUATE = "experiments.minigrid_evaluate"


class Policies(NamedTuple):
    """Policies that a job needs."""

    job: str  # the name of the job that saves them
    run: Path  # that job's directory
    frames: int  # the frames of their checkpoint

    @property
    def are_there(self) -> bool:
        """Whether they have been saved."""
        directory = RunDirectory(self.run)
        saved = (*checkpoints(directory.policies), *checkpoints(directory.checkpoints))
        return self.frames in set(map(frames_of, saved))


@dataclass(frozen=True)
class Job:
    """A run."""

    name: str  # a path, for messages and file names
    module: str  # the training command
    root: Path  # the run's directory
    words: tuple[str, ...]  # of the command line
    frames: int = 0  # to reach, for each seed
    seeds: int = 1
    first: tuple[str, ...] = ()  # words of the command line that begins the run, and no later one
    needs: Policies | None = None
    asked: Any = None  # equal for runs with equal numbers (None: not looked into)
    alike: Any = None  # equal for all jobs that one program can do together (None: does it alone)
    early_end: Any = None  # the rule that may end it (None: not looked into)

    @property
    def config(self) -> Path:
        """The file that exists as soon as there is a run to continue."""
        return RunDirectory(self.root).config

    @property
    def beginning(self) -> tuple[str, ...]:
        """The command line that begins the run."""
        return (*self.words, *self.first)

    @property
    def continuing(self) -> tuple[str, ...]:
        """The command line that continues the run."""
        return (*self.words, "--resume")

    @property
    def reached(self) -> int:
        """Frames that each seed has played."""
        return RunDirectory(self.root).saved_frames()

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        last = manifest.last_session(RunDirectory(self.root).manifest)
        rule = last.get("early_end", self.early_end)  # earlier versions did not record it
        ended = bool(last.get("ended")) and self.early_end in (None, rule)
        return self.config.exists() and (ended or self.reached >= self.frames)

    @property
    def ready(self) -> bool:
        """Whether the policies that it needs are there; a run keeps them in its checkpoints."""
        if self.needs is None or self.needs.are_there:
            return True
        return bool(checkpoints(RunDirectory(self.root).checkpoints))

    @property
    def state(self) -> str:
        """How far it is, in words."""
        if self.done:
            return "done"
        return f"at {self.reached:,} frames" if self.config.exists() else "to do"


@dataclass(frozen=True)
class Evaluation(Job):
    """An evaluation of policies in some worlds; one table may hold several of them.

    Its folder never holds a run, so it is always begun anew, and no frames are reached.
    """

    worlds: tuple[str, ...] = ()

    @property
    def beginning(self) -> tuple[str, ...]:
        """The command line that plays the worlds which no table has yet."""
        there = evaluated_worlds(self.root)
        left = [world for world in self.worlds if world not in there] or self.worlds
        return (*self.words, "--envs", *map(own_code.given, left))

    @property
    def done(self) -> bool:
        """Whether tables have all worlds."""
        return evaluated_worlds(self.root) >= {*self.worlds}


def evaluated_worlds(folder: Path) -> set[str]:
    """Return the worlds in the tables of a folder; reports refuse tables that are damaged."""
    found: set[str] = set()
    for path in folder.glob("*.csv"):
        with contextlib.suppress(UnreadableError):
            found |= {row.get("environment") or "" for row in read_table(path)[1]}
    return found


def at_chunk_end(run: RunSettings | TrainingOptions, frames: int) -> int:
    """Return the end of the chunk that reaches `frames`: runs are saved only there."""
    chunk = run.chunk * run.train.iteration_frames
    return -(-frames // chunk) * chunk


def check(jobs: Iterable[Job]) -> list[Job]:
    """Check the command lines and directories of runs before the first run begins.

    Returns:
        The jobs, with their frames, `alike` and `early_end` filled in.
    """
    checked = []
    for job in jobs:
        try:
            checked.append(_checked(job))
        except (SettingsError, RunDirectoryError) as error:
            raise type(error)(f"{job.name}: {error}") from None
    return checked


def _checked(job: Job) -> Job:
    begun = job.config.exists()
    if isinstance(job, Evaluation) or not (begun or job.ready):
        return job  # a policy that is not there yet cannot be looked into
    from cbet_jax.intrinsic import make_intrinsic  # imported here: these take seconds
    from cbet_jax.settings import swept
    from envs.minigrid import make_world

    experiment = importlib.import_module(job.module).EXPERIMENT
    words = job.continuing if begun else job.beginning
    options: TrainingOptions
    options, _ = opening.read(experiment, words)
    make_intrinsic(options.train, num_actions=1)
    settings = options.settings
    if not settings.habitat:  # of a scene, only its simulator knows whether it is there
        make_world(settings.environments, options.train.worlds, explore=False)
    job = replace(job, early_end=options.early_end)
    if job.frames:
        return job
    frames = at_chunk_end(options, options.until or options.train.frames)
    asked = _with(options, out=None, resume=False)
    # One program can train all runs that differ in numbers only, and ends with the last of them.
    ends_early = (options.until_success, options.without_success) != (None, None)
    together = experiment.together and not options.distributed and not ends_early
    train = swept.shared(options.train)
    alike = (job.module, _with(asked, first_seed=0, train=train)) if together else None
    return replace(job, frames=frames, seeds=options.seeds, asked=asked, alike=alike)


def _with(options: TrainingOptions, **values: Any) -> TrainingOptions:
    """Return options with other values, which are not checked."""
    changed = copy.copy(options)
    for name, value in values.items():
        object.__setattr__(changed, name, value)
    return changed
