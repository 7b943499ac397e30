"""Say how the learning curves of runs differ, and lay them over each other.

    python -m experiments.compare float32=RUN bfloat16=RUN --out FOLDER

Whether a change of speed or of a setting changes learning is a question to the seeds: the table
gives each metric's mean over the seeds at the end, and the difference from the first run, with
95 % confidence intervals (Welch's for the difference: the runs may spread differently). The mean
of all worlds is the mean of the worlds' own means.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated

import tyro
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cbet_jax.analysis import figures
from cbet_jax.analysis.figures import Panel
from cbet_jax.analysis.learning_curves import ALL_WORLDS
from cbet_jax.config import SettingsError
from cbet_jax.runs import metrics
from cbet_jax.runs.directory import RunDirectoryError
from experiments.common import cli
from experiments.common.outputs import new_folder, write_table
from experiments.common.screen import Screen, say
from experiments.reports import runs
from experiments.reports.comparison import Row
from experiments.reports.runs import Run

MODULE = "experiments.compare"
NAME = "comparison"
HEADER = ("run", "metric", "world", "seed", "value")


@dataclass(frozen=True)
class CompareOptions:
    """Compare the learning curves of runs."""

    #: two runs or more; the others are compared with the first
    runs: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[NAME=]RUN ...")]
    out: Path | None = None  # folder of the table and the picture (None: a new one in runs/)
    until: int | None = None  # last frame that counts (None: the last that all have played)


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    console = Screen()
    with cli.user_errors():
        options: CompareOptions = cli.parse(CompareOptions, arguments, MODULE)
        if len(options.runs) < 2:
            raise SettingsError("give two or more runs: [NAME=]RUN ...")
        if options.out and options.out.suffix in (".csv", ".html", ".png"):
            raise SettingsError(f"--out is a folder of two files, and {options.out} looks like one")
        found = runs.read(options.runs)
        for run in found:
            if not any(ALL_WORLDS in lines for lines in run.metrics.values()):  # a bare policy
                raise RunDirectoryError(
                    f"{run.directory.root} has no learning curves of all worlds"
                )
        until = runs.last_frames(found, options.until)
        ends = runs.ends(found, until)
        rows = [(*row[:3], seed, value) for row in ends for seed, value in row.values.items()]
        folder = new_folder(options.out, NAME)
        write_table(folder / f"{NAME}.csv", HEADER, rows)
        picture = draw(folder / f"{NAME}.png", found, until)
    show(found, ends, until, console)
    say(console, f"saved: {picture} and {NAME}.csv")


def draw(path: Path, found: Sequence[Run], until: int) -> Path:
    """Draw a panel for each metric: mean over the seeds, lowest and highest seed.

    The axis of minutes has the speed of the first run's last start.
    """
    panels, last = [], found[0].sessions[-1] if found[0].sessions else {}
    scale, unit = figures.scale_of(until)
    speed = runs.speed_of(last) * 60 / scale
    for name, lines in runs.curves(found, until).items():
        metric = metrics.of(name)
        lines = {run: c._replace(frames=c.frames / scale) for run, c in lines.items()}
        panel = Panel(metric.title, f"frames of each seed ({unit})", metric.unit, lines)
        panels.append(panel._replace(speed=speed))
    seeds = ", ".join(f"{run.name}: {run.settings.seeds}" for run in found)
    title = f"Means over seeds ({seeds}); bands: lowest to highest"
    return figures.draw_lines(path, title, panels, methods=False)


def show(found: Sequence[Run], ends: Sequence[Row], until: int, console: Console) -> None:
    """Print the settings in which runs differ, how they end, and how far they are apart."""
    for name, values in runs.differing(found).items():
        say(console, f"{name}: {' | '.join(values)}")
    table = Table(box=box.SIMPLE)
    for title in ("world", "run", "mean over seeds", f"difference from {found[0].name}"):
        table.add_column(title, overflow="fold")
    lines, said = runs.compared(found, ends, until)
    for metric, group in groupby(lines, key=lambda line: line[0]):
        table.add_row(Text(metric, style="bold"))
        for _, *cells in group:
            table.add_row(*map(Text, cells))
    console.print(table)
    for line in said:
        say(console, line)


if __name__ == "__main__":
    main()
