"""The plan of a sweep: one run for each cell of its grid, as values.

    SWEEP/sweep.json                  which command the sweep is over
    SWEEP/runs/method=cbet,.../       runs, as every other command leaves them
    SWEEP/jobs/                       the output of each job, and what submitit keeps
    SWEEP/results.csv                 the end of every finished run

A run is done if its files are there. Nothing else records it, so a sweep continues from wherever
it was stopped.
"""

import copy
import importlib
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from cbet_jax.config import SettingsError
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from envs.minigrid import make_world
from experiments.common import opening
from experiments.common.training_options import TrainingOptions
from experiments.study.plan import at_chunk_end, reached

COMMANDS = {
    "pretrain": "experiments.minigrid_pretrain",
    "tabula_rasa": "experiments.minigrid_tabula_rasa",
    "transfer": "experiments.minigrid_transfer",
    "habitat": "experiments.habitat_pretrain",
}
RUNS = "runs"
FLAGS = {"true": "", "false": "no-"}  # values of a setting that is on or off

ITS_OWN = ("out", "resume")  # options that a sweep gives its runs itself
OWN, OWN_OPTION = "own.", "--own"  # own.NAME in a grid is a setting of somebody's own method

Grid = dict[str, tuple[str, ...]]  # setting -> its values, as a command line has them
Cell = tuple[tuple[str, str], ...]  # settings, each with one of its values


class SweepJob(NamedTuple):
    """One run of a sweep."""

    cell: Cell
    module: str  # of the training command
    arguments: tuple[str, ...]  # the words of its command line, without the directory
    root: Path  # its directory
    frames: int = 0  # of each seed, as its command line asks for (0: that was not read yet)

    @property
    def config(self) -> Path:
        """The file that exists as soon as there is a run to continue."""
        return RunDirectory(self.root).config

    @property
    def begun(self) -> bool:
        """Whether there is a run to continue."""
        return self.config.exists()

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        if not self.begun:
            return False
        settings = RunDirectory(self.root).settings()
        frames = max(settings.train.frames, self.frames)  # more: the run is made longer
        return reached(self.root) == at_chunk_end(settings, frames)

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command line that begins the run."""
        film = () if {"--film", "--no-film"} & {*self.arguments} else ("--no-film",)
        return (*self.arguments, *film, "--out", str(self.root))

    def __str__(self) -> str:
        """The cell, which names the run's directory."""
        return self.root.name


class SweepGroup(NamedTuple):
    """Runs of a sweep that one program trains."""

    jobs: tuple[SweepJob, ...]

    @property
    def begun(self) -> bool:
        """Whether there is a run to continue."""
        return any(job.begun for job in self.jobs)

    def __str__(self) -> str:
        """The run, or the first and the last of them."""
        first, *others = self.jobs
        return f"{first} to {others[-1]} ({len(self.jobs)} runs)" if others else str(first)


def read_grid(words: Sequence[str]) -> Grid:
    """Read `setting=value,value ...`.

    Raises:
        SettingsError: a word is not of that form, or a setting or a value is named twice.
    """
    grid: Grid = {}
    for word in words:
        name, equals, values = word.removeprefix("--").partition("=")
        each = tuple(values.split(","))
        if not equals or not name or "" in each:
            raise SettingsError(f"grid takes setting=value,value ..., not {word!r}")
        if name in grid:
            raise SettingsError(f"grid names {name} twice")
        if len(set(each)) < len(each):
            raise SettingsError(f"grid names a value of {name} twice: {values}")
        if name in ITS_OWN:
            raise SettingsError(f"a sweep says --{name} itself")
        grid[name] = each
    return grid


def plan(root: Path, command: str, grid: Grid, fixed: Sequence[str]) -> list[SweepJob]:
    """Return the runs of a sweep, the last setting changing fastest.

    Args:
        root: the sweep's directory.
        command: one of `COMMANDS`.
        grid: the settings that differ.
        fixed: the words of the command line that all runs share.

    Raises:
        SettingsError: two cells would have one directory.
    """
    jobs = []
    for values in itertools.product(*grid.values()):
        cell = tuple(zip(grid, values, strict=True))
        place = root / RUNS / (_name(cell) or command)
        jobs.append(SweepJob(cell, COMMANDS[command], _words(fixed, cell), place))
    if len({job.root for job in jobs}) < len(jobs):
        raise SettingsError(
            "grid has values that differ only in signs a directory's name cannot have"
        )
    return jobs


def check(jobs: Sequence[SweepJob]) -> dict[SweepJob, TrainingOptions]:
    """Check every command line and every directory before anything is run.

    Returns:
        What the command line of each run asks for; the runs know their frames.

    Raises:
        SettingsError: a command line cannot be read, or not be run. RunDirectoryError: a run is
            there that was begun with other settings. UnknownEnvironment: no environment has such
            a name.
    """
    checked = {}
    for job in jobs:
        try:
            options = _check(job)
            checked[job._replace(frames=options.train.frames)] = options
        except (SettingsError, RunDirectoryError) as error:
            raise type(error)(f"{job}: {error}" if job.cell else str(error)) from None
    return checked


def groups(
    checked: Mapping[SweepJob, TrainingOptions], at_most: int | None = None
) -> list[SweepGroup]:
    """Return the runs in groups that one program can train: they differ in numbers alone.

    Args:
        checked: the runs, and what their command lines ask for.
        at_most: runs in a group (None: any number).
    """
    alike: dict[Any, list[SweepJob]] = {}
    for job, options in checked.items():
        alike.setdefault(_program(job, options), []).append(job)
    return [
        SweepGroup(batch)
        for jobs in alike.values()
        for batch in itertools.batched(jobs, at_most or len(jobs))
    ]


def _program(job: SweepJob, options: TrainingOptions) -> Any:
    """Return what is equal for all runs that one program can train."""
    experiment = importlib.import_module(job.module).EXPERIMENT
    if not experiment.together or options.distributed:
        return job
    same = copy.copy(options)
    own = {
        "first_seed": 0,
        "out": None,
        "resume": False,
        "train": jax.tree.structure(options.train),
    }
    for name, value in own.items():  # not `replace`, which would check them
        object.__setattr__(same, name, value)
    return job.module, same


def _check(job: SweepJob) -> TrainingOptions:
    resume = ["--resume"] if job.begun else []
    experiment = importlib.import_module(job.module).EXPERIMENT
    options: TrainingOptions
    options, _ = opening.read(experiment, [*job.words, *resume])
    make_intrinsic(options.train, num_actions=1)
    if options.gridworlds:  # of a scene, only its simulator knows whether it is there
        make_world(options.gridworlds, options.train.worlds, explore=False)
    return options


def _words(fixed: Sequence[str], cell: Cell) -> tuple[str, ...]:
    """Return the words of a run's command line; settings of an own method follow one --own."""
    words = list(fixed)
    own = []
    for name, value in cell:
        if name.startswith(OWN):
            own.append(f"{name.removeprefix(OWN)}={value}")
        else:
            words += _option(name, value)
    if own:
        if OWN_OPTION not in words:
            words.append(OWN_OPTION)
        begin = words.index(OWN_OPTION) + 1
        words[begin:begin] = own
    return tuple(words)


def _option(name: str, value: str) -> list[str]:
    """Return the words of a command line that give a setting a value."""
    if value in FLAGS:
        parent, dot, last = name.rpartition(".")
        return [f"--{parent}{dot}{FLAGS[value]}{last}"]
    return [f"--{name}", *value.split()]


def _name(cell: Cell) -> str:
    return ",".join(f"{name}={re.sub(r'[^\w.+-]', '_', value)}" for name, value in cell)
