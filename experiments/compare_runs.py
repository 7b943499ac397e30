"""Lay the learning curves of several runs over each other, and say how they differ.

    python -m experiments.compare_runs float32=RUN bfloat16=RUN --out FOLDER

Whether a change of speed or of a setting changes learning is a question to the seeds: the table
gives each metric's mean over the seeds at the end, and the difference from the first run, with
95 % confidence intervals (Welch's for the difference: the runs may spread differently).
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from cbet_jax.analysis import figures
from cbet_jax.analysis.figures import Panel
from cbet_jax.analysis.intervals import difference, mean
from cbet_jax.analysis.learning_curves import Curve, band, smoothed
from cbet_jax.config import SettingsError
from cbet_jax.runs import metrics, metrics_table
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError, holds_no
from experiments.common import cli
from experiments.common.outputs import new_folder, write_table
from experiments.common.screen import Screen

MODULE = "experiments.compare_runs"
NAME = "comparison"
HEADER = ("run", "seed", "metric", "frames", "value")
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
    values: dict[str, np.ndarray]  # metric -> [seeds, points]; NaN: no data
    seeds: tuple[int, ...]


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors():
        options: CompareOptions = cli.parse(CompareOptions, arguments, MODULE)
        tables = read(options.runs)
        until = last_frames(tables, options.until)
        frames = np.arange(1, POINTS + 1) * until // POINTS
        runs = [_run(name, table, frames) for name, table in tables.items()]
        folder = new_folder(options.out, NAME)
        write_table(folder / f"{NAME}.csv", HEADER, rows(runs, frames))
        picture = draw(folder / f"{NAME}.png", runs, frames)
    show(runs, until, console)
    console.print(f"saved: {picture} and {NAME}.csv", soft_wrap=True, highlight=False)


Metrics = Mapping[str, dict[int, metrics_table.Column]]


def read(words: Sequence[str]) -> dict[str, Metrics]:
    """Read the tables of metrics of `NAME=RUN` or `RUN`, by name.

    Raises:
        SettingsError: there are fewer than two, or two have one name. RunDirectoryError: one
            has no metrics.
    """
    found: dict[str, Metrics] = {}
    for word in words:
        name, equals, path = word.partition("=")
        directory = RunDirectory(Path(path if equals else word))
        name = name if equals else directory.root.name
        if name in found:
            raise SettingsError(f"two runs are called {name!r}: say NAME=RUN")
        if not directory.metrics.is_file():
            raise holds_no("run", directory.metrics)
        found[name] = metrics_table.read_verified(directory)
        if not found[name]:
            raise RunDirectoryError(f"{directory.root} has played nothing yet")
    if len(found) < 2:
        raise SettingsError("give two or more runs: [NAME=]RUN ...")
    return found


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
    values = {
        metric: np.stack([smoothed(column, window, frames) for column in table[metric].values()])
        for metric in metrics.MAIN
        if metric in table
    }
    return ComparedRun(name, values, tuple(next(iter(table.values()))))


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
    for metric in dict.fromkeys(metric for run in runs for metric in run.values):
        title, unit = metrics.of(metric).title, metrics.of(metric).unit
        lines = {
            run.name: _curve(run.values[metric], frames) for run in runs if metric in run.values
        }
        panels.append(Panel(title, "frames of each seed (millions)", unit, lines))
    seeds = ", ".join(f"{run.name}: {len(run.seeds)}" for run in runs)
    return figures.lines(path, f"Means over seeds ({seeds}); bands: lowest to highest", panels)


def _curve(values: np.ndarray, frames: np.ndarray) -> Curve:
    there = ~np.isnan(values).all(axis=0)
    return band(frames[there] / 1e6, values[:, there])


def show(runs: Sequence[ComparedRun], until: int, console: Console) -> None:
    """Print how each metric ended, and how far each run is from the first."""
    console.print(f"means over the {-(-until // LAST):,} frames before {until:,}, 95 % intervals")
    table = Table(box=box.SIMPLE)
    first = runs[0]
    for title in ("metric", "run", "mean over seeds", f"less {first.name}"):
        table.add_column(title, overflow="fold")
    for metric in first.values:
        ends = {run.name: run.values[metric][:, -1] for run in runs if metric in run.values}
        ends = {name: values[~np.isnan(values)] for name, values in ends.items()}
        for name, values in ends.items():
            if len(values) and len(ends[first.name]):
                apart = "" if name == first.name else difference(values, ends[first.name]).text(3)
                table.add_row(metric, name, mean(values).text(3), apart)
    console.print(table)


if __name__ == "__main__":
    main()
