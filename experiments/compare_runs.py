"""Lay the learning curves of several runs over each other, and say how they differ.

    python -m experiments.compare_runs float32=RUN bfloat16=RUN --out FOLDER

Whether a change of speed or of a setting changes learning is a question to the seeds: the table
gives each metric's mean over the seeds at the end, and the difference from the first run, with
95 % confidence intervals (Welch's for the difference: the runs may spread differently). The mean
of all worlds is the mean of the worlds' own means.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import tyro
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cbet_jax.analysis import figures
from cbet_jax.analysis.figures import ALL_WORLDS, Panel
from cbet_jax.analysis.intervals import difference, mean
from cbet_jax.analysis.learning_curves import (
    Curve,
    band,
    of_all_worlds,
    smoothed,
    table_from_first_round,
)
from cbet_jax.config import SettingsError
from cbet_jax.runs import metrics, metrics_table
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError, holds_no
from cbet_jax.settings_json import flattened, to_json
from experiments.common import cli
from experiments.common.outputs import new_folder, write_table
from experiments.common.screen import Screen

MODULE = "experiments.compare_runs"
NAME = "comparison"
HEADER = ("run", "seed", "metric", "frames", "value")
INTRINSIC = "intrinsic_reward"
OF_THE_REWARD = (
    *("train.method", "train.own", "train.intrinsic_coefficient"),
    *("train.counts.", "train.auxiliary."),
)
NO_STATEMENT = "one seed each: the runs differ by chance, too; --seeds 3 tells how much"
OTHER_SCALE = "another scale"
POINTS = 60  # of a curve
LAST = 10  # of so many parts the last one is the end, and the window of the curves


@dataclass(frozen=True)
class CompareOptions:
    """Compare the learning curves of runs."""

    runs: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[NAME=]RUN ...")]
    out: Path | None = None  # folder of the table and the picture (default: a new one in runs/)
    until: int | None = None  # frames that are looked at (default: all that all runs have played)


class ComparedRun(NamedTuple):
    """What one run's seeds did, up to the same frames."""

    name: str
    values: dict[str, np.ndarray]  # metric, or METRIC/WORLD -> [seeds, points]; NaN: no data
    seeds: tuple[int, ...]


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors():
        options: CompareOptions = cli.parse(CompareOptions, arguments, MODULE)
        directories = named(options.runs)
        tables = {name: read(directory) for name, directory in directories.items()}
        until = last_frames(tables, options.until)
        frames = np.arange(1, POINTS + 1) * until // POINTS
        runs = [_run(name, table, frames) for name, table in tables.items()]
        differing = differing_settings(directories)
        folder = new_folder(options.out, NAME)
        write_table(folder / f"{NAME}.csv", HEADER, rows(runs, frames))
        picture = draw(folder / f"{NAME}.png", runs, frames)
    show_settings(differing, console)
    older = [name for name, table in tables.items() if "episodes" not in table]
    if 0 < len(older) < len(runs):
        line = f"iterations, not episodes, count alike in {', '.join(older)}, of an older version"
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    show(runs, until, console, same_reward=not _changes_reward(differing))
    console.print(f"saved: {picture} and {NAME}.csv", soft_wrap=True, highlight=False)


Metrics = Mapping[str, dict[int, metrics_table.Column]]
Differing = dict[str, tuple[str, ...]]  # setting -> its value in each run


def named(words: Sequence[str]) -> dict[str, RunDirectory]:
    """Return the directories of `NAME=RUN` or `RUN`, by name.

    Raises:
        SettingsError: there are fewer than two, or two have one name.
    """
    found: dict[str, RunDirectory] = {}
    for word in words:
        name, path = _name_and_path(word)
        if name in found:
            raise SettingsError(f"two runs are called {name!r}: say NAME=RUN")
        found[name] = RunDirectory(path)
    if len(found) < 2:
        raise SettingsError("give two or more runs: [NAME=]RUN ...")
    return found


def _name_and_path(word: str) -> tuple[str, Path]:
    """Split NAME=RUN where what follows is a folder: names and folders may hold a `=`, too."""
    if Path(word).is_dir() or "=" not in word:
        return Path(word).name, Path(word)
    places = [place for place, letter in enumerate(word) if letter == "="]
    folders = [place for place in places if Path(word[place + 1 :]).is_dir()]
    place = folders[0] if folders else places[-1]
    return word[:place], Path(word[place + 1 :])


def read(directory: RunDirectory) -> Metrics:
    """Read a run's table of metrics, from where each of its actors may have ended an episode.

    Raises:
        RunDirectoryError: it has none, or nothing is in it that can be compared.
    """
    if not directory.metrics.is_file():
        raise holds_no("run", directory.metrics)
    table = metrics_table.read_verified(directory)
    if not table:
        raise RunDirectoryError(f"{directory.root} has played nothing yet")
    if table.keys().isdisjoint(metrics.MAIN):  # as of a policy of the package
        raise RunDirectoryError(f"{directory.root} has no learning curves, only how it ended")
    actors = directory.settings().train.worlds if directory.config.is_file() else 0
    return table_from_first_round(table, actors)


def differing_settings(directories: Mapping[str, RunDirectory]) -> Differing:
    """Return the settings that are not the same in all runs."""
    there = [directory for directory in directories.values() if directory.config.is_file()]
    if len(there) < len(directories):
        return {}
    settings = [flattened(to_json(directory.settings())) for directory in there]
    names = dict.fromkeys(name for each in settings for name in each)
    values = {name: tuple(str(each.get(name)) for each in settings) for name in names}
    return {name: each for name, each in values.items() if len(set(each)) > 1}


def _changes_reward(differing: Differing) -> bool:
    return any(name.startswith(OF_THE_REWARD) for name in differing)


def last_frames(tables: Mapping[str, Metrics], until: int | None) -> int:
    """Return the frames up to which all runs are compared.

    Raises:
        SettingsError: some run has not played as many as asked for.
    """
    ends = {
        name: max(int(column.frames[-1]) for seeds in table.values() for column in seeds.values())
        for name, table in tables.items()
    }
    shortest = min(ends, key=lambda name: ends[name])
    if until is None:
        return ends[shortest]
    if not POINTS <= until <= ends[shortest]:
        raise SettingsError(
            f"until must be in {POINTS}..{ends[shortest]}, the frames of {shortest!r}, not {until}"
        )
    return until


def _run(name: str, table: Metrics, frames: np.ndarray) -> ComparedRun:
    window = -(-int(frames[-1]) // LAST)
    seeds = tuple(sorted({seed for columns in table.values() for seed in columns}))
    missing = np.full(len(frames), np.nan)  # of a seed: no episode has ended, there or at all

    def over_worlds(metric: str, seed: int) -> np.ndarray:
        return of_all_worlds(table, metric, seed, window, frames)

    def in_world(key: str, seed: int) -> np.ndarray:
        return smoothed(table[key][seed], window, frames)

    def of_seeds(key: str, curve: Callable[[str, int], np.ndarray]) -> np.ndarray:
        return np.stack([curve(key, seed) if seed in table[key] else missing for seed in seeds])

    values = {}
    for metric in (metric for metric in metrics.MAIN if metric in table):
        values[metric] = of_seeds(metric, over_worlds)
        for world in (key for key in sorted(table) if key.startswith(f"{metric}/")):
            values[world] = of_seeds(world, in_world)
    return ComparedRun(name, values, seeds)


def rows(runs: Sequence[ComparedRun], frames: np.ndarray) -> list[tuple[str, int, str, int, float]]:
    """Return every point of every curve, in long form."""
    return [
        (run.name, seed, metric, int(frame), float(value))
        for run in runs
        for metric, curves in run.values.items()
        for seed, curve in zip(run.seeds, curves, strict=True)
        for frame, value in zip(frames, curve, strict=True)
        if not np.isnan(value)
    ]


def draw(path: Path, runs: Sequence[ComparedRun], frames: np.ndarray) -> Path:
    """Draw a panel for each metric: mean over the seeds, lowest and highest seed."""
    panels = []
    for name in dict.fromkeys(metric for run in runs for metric in run.values if "/" not in metric):
        metric = metrics.of(name)
        lines = {run.name: _curve(run.values[name], frames) for run in runs if name in run.values}
        panels.append(Panel(metric.title, "frames of each seed (millions)", metric.unit, lines))
    not_zero = [panel for panel in panels if any(line.high.any() for line in panel.lines.values())]
    panels = not_zero or panels
    seeds = ", ".join(f"{run.name}: {len(run.seeds)}" for run in runs)
    return figures.lines(path, f"Means over seeds ({seeds}); bands: lowest to highest", panels)


def _curve(values: np.ndarray, frames: np.ndarray) -> Curve:
    there = ~np.isnan(values).all(axis=0)
    return band(frames[there] / 1e6, values[:, there])


def show_settings(differing: Differing, console: Console) -> None:
    """Print the settings in which the runs differ."""
    for name, values in differing.items():
        console.print(
            f"{name}: {' | '.join(values)}", soft_wrap=True, highlight=False, markup=False
        )


def show(runs: Sequence[ComparedRun], until: int, console: Console, *, same_reward: bool) -> None:
    """Print how each metric ended, and how far each run is from the first.

    Args:
        runs: at least two.
        until: frames at the end.
        console: to print to.
        same_reward: whether intrinsic rewards of the runs have one scale.
    """
    single = all(len(run.seeds) == 1 for run in runs)
    window = f"means over the {-(-until // LAST):,} frames before {until:,}"
    console.print(window if single else f"{window} [95 % intervals]", markup=False)
    table = Table(box=box.SIMPLE)
    first = runs[0]
    for title in ("world", "run", "mean over seeds", f"difference from {first.name}"):
        table.add_column(title, overflow="fold")
    for name in first.values:
        metric, _, world = name.partition("/")
        if not world:
            table.add_row(Text(metrics.of(metric).title, style="bold"))
        ends = {run.name: run.values[name][:, -1] for run in runs if name in run.values}
        ends = {run: values[~np.isnan(values)] for run, values in ends.items()}
        for run, values in ends.items():
            if len(values) and len(ends[first.name]):
                comparable = same_reward or metric != INTRINSIC
                apart = _difference(values, ends[first.name]) if comparable else OTHER_SCALE
                mine = [world or ALL_WORLDS, run, _mean(values)]
                table.add_row(*mine, "" if run == first.name else apart)
    console.print(table)
    if single:
        console.print(NO_STATEMENT, soft_wrap=True)
    if not same_reward:
        line = "Intrinsic rewards of other methods or settings have another scale: not compared."
        console.print(line, soft_wrap=True)


def _mean(values: np.ndarray) -> str:
    return mean(values).text(3) if len(values) > 1 else f"{values[0]:.3f} one seed"


def _difference(ours: np.ndarray, theirs: np.ndarray) -> str:
    found = difference(ours, theirs)
    return f"{found.value:+.3f} one seed" if np.isnan(found.low) else found.text(3)


if __name__ == "__main__":
    main()
