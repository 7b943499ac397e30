"""The plan of a sweep: a run for each cell of its grid.

    SWEEP/sweep.json                  which command the sweep is over
    SWEEP/runs/method=cbet,.../       runs, as every other command leaves them
    SWEEP/jobs/                       the output of each job, and what submitit keeps
    SWEEP/results.csv                 the end of each finished run of the last grid

Any word of the training command's line can be in the grid.
"""

import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path

from cbet_jax.config import SettingsError
from experiments.sweeps.jobs import COMMANDS, Job

RUNS = "runs"
FLAGS = {"true": "", "false": "no-"}  # values of a setting that is on or off
FILM = ("--film", "--no-film")
ITS_OWN = ("out", "resume")  # options that a sweep gives its runs itself
MOST_RUNS, LONGEST_NAME = 10_000, 237  # bytes, of 255: files being written need 18 for endings
OWN, OWN_OPTION = "own.", "--own"  # own.NAME in a grid is a setting of the user's own method

Grid = dict[str, tuple[str, ...]]  # setting -> its values, as a command line has them
Cell = tuple[tuple[str, str], ...]  # settings, each with one of its values


def read_grid(words: Sequence[str]) -> Grid:
    """Read `setting=value,value ...`.

    Raises:
        SettingsError: a word is not of that form, or a setting or a value is named twice, or there
            are too many runs.
    """
    grid: Grid = {}
    for word in words:
        name, equals, values = word.removeprefix("--").partition("=")
        each = tuple(values.split(","))
        if not equals or not name or "" in each:
            raise SettingsError(f"grid takes setting=value,value ..., not {word!r}")
        if name.replace("_", "-") in {other.replace("_", "-") for other in grid}:
            raise SettingsError(f"grid names {name} twice")
        if len(set(each)) < len(each):
            raise SettingsError(f"grid names a value of {name} twice: {values}")
        if name in ITS_OWN:
            raise SettingsError(f"a sweep says --{name} itself")
        grid[name] = each
    if (runs := math.prod(map(len, grid.values()))) > MOST_RUNS:
        raise SettingsError(f"grid has {runs:,} runs, more than {MOST_RUNS:,}")
    return grid


def plan(root: Path, command: str, grid: Grid, fixed: Sequence[str]) -> dict[Job, Cell]:
    """Return the runs of a sweep with their cells, the last setting changing fastest.

    Args:
        root: the sweep's directory.
        command: one of `COMMANDS`.
        grid: the settings that differ.
        fixed: the words of the command line that all runs share.

    Raises:
        SettingsError: cells would have one directory or a long name, or `fixed` sets the grid's.
    """
    _refuse_both(grid, fixed)
    jobs = {}
    film = () if "film" in grid or {*FILM} & {*fixed} else ("--no-film",)
    for values in itertools.product(*grid.values()):
        cell = tuple(zip(grid, values, strict=True))
        said = (f"{setting}={re.sub(r'[^\w.+-]', '_', value)}" for setting, value in cell)
        name = ",".join(said) or command
        place = root / RUNS / name
        words = (*_words(fixed, cell), *film, "--out", str(place))
        jobs[Job(name, COMMANDS[command], place, words)] = cell
    if any(len(job.name.encode()) > LONGEST_NAME for job in jobs):
        raise SettingsError("grid has a run whose settings are too long for a directory's name")
    if len({job.root for job in jobs}) < len(jobs):
        raise SettingsError("grid has values that differ only in signs no directory's name has")
    return jobs


def _refuse_both(grid: Grid, fixed: Sequence[str]) -> None:
    said = {word.partition("=")[0].replace("_", "-") for word in fixed if word.startswith("--")}
    for name in grid:
        if said & {_option(name.replace("_", "-"), value)[0] for value in ("", *FLAGS)}:
            raise SettingsError(f"--{name} is both in the grid and beside it: leave one out")


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
