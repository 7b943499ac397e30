"""The end of every finished run of a sweep, as one table."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from cbet_jax.analysis.learning_curves import ALL_WORLDS, Lines, at_the_end, by_metric
from cbet_jax.runs import metrics_table
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.metrics import HIDDEN, SHOWN
from experiments.common.outputs import write_table
from experiments.sweeps.grid import Cell
from experiments.sweeps.jobs import Job

ASKED = {"frames": "frames_asked"}  # a grid's setting whose name another column has


class SweepRow(NamedTuple):
    """How one seed of a run ended."""

    cell: Cell
    seed: int
    frames: int
    values: dict[str, float]  # metric -> mean over the end, where there is data


def collect(jobs: Mapping[Cell, Job]) -> list[SweepRow]:
    """Return a row for each seed of each run that is done."""
    return [row for cell, job in jobs.items() if job.done for row in _rows(cell, job)]


def write(path: Path, rows: Sequence[SweepRow]) -> None:
    """Save the table atomically, with empty cells for missing metrics."""
    names = sorted({name for row in rows for name in row.values})
    settings = [ASKED.get(name, name) for name, _ in rows[0].cell] if rows else []
    lines = (
        (*dict(row.cell).values(), row.seed, row.frames, *(row.values.get(x, "") for x in names))
        for row in rows
    )
    write_table(path, (*settings, "seed", "frames", *names), lines, again=True)


def show(rows: Sequence[SweepRow], console: Console) -> None:
    """Print a line for each run: the means over its seeds of what matters most."""
    if not rows:
        return
    names = [name for name in SHOWN if any(name in row.values for row in rows)]
    table = Table(box=box.SIMPLE)
    settings = [ASKED.get(name, name) for name, _ in rows[0].cell]
    for title in (*settings, "seeds", "frames", *(SHOWN[name] for name in names)):
        table.add_column(title, overflow="fold")
    for cell in dict.fromkeys(row.cell for row in rows):
        group = [row for row in rows if row.cell == cell]
        found = ([row.values[name] for row in group if name in row.values] for name in names)
        means = (f"{np.mean(values):.4g}" if values else "" for values in found)
        table.add_row(
            *(value for _, value in cell), str(len(group)), f"{group[0].frames:,}", *means
        )
    console.print(table)


def _rows(cell: Cell, job: Job) -> list[SweepRow]:
    table = metrics_table.read_verified(RunDirectory(job.root))
    last = int(max(column.frames[-1] for seeds in table.values() for column in seeds.values()))
    rows: list[SweepRow] = []
    shown: dict[str, Lines] = {name: {ALL_WORLDS: seeds} for name, seeds in table.items()}
    of_worlds = by_metric(table)  # which weigh the same, but their episodes add up
    shown |= {name: of_worlds[name] for name in shown if name in of_worlds and name != "episodes"}
    for seed in sorted({seed for seeds in table.values() for seed in seeds}):
        means = {
            name: at_the_end(lines, ALL_WORLDS, seed, last)
            for name, lines in shown.items()
            if seed in table[name] and name not in HIDDEN
        }
        found = {name: value for name, value in means.items() if not np.isnan(value)}
        rows.append(SweepRow(cell, seed, last, found))
    return rows
