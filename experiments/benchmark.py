"""Measure the worlds and the training: `python -m experiments.benchmark`.

Every ratio is the median over pairs of short slices that were measured in turn, with its spread
(10th to 90th percentile over the median). A ratio of fewer than three pairs, or of a spread over
25 %, is not printed.
Nothing else is judged here: the table says what was measured.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from cbet_jax.config import CountSettings, SettingsError
from cbet_jax.runs import manifest
from cbet_jax.runs.atomic_write import check_room, creating
from cbet_jax.runs.devices import use_cpu
from cbet_jax.setting_types import check_between
from envs.registry import UnknownEnvironment, find
from experiments.benchmarks import (
    gymnasium_measurements,
    training_measurements,
    world_measurements,
)
from experiments.benchmarks.measurement import BenchmarkOptions, Measurement
from experiments.common import cli, presets
from experiments.common.presets import PRESETS
from experiments.common.screen import Screen

MODULE = "experiments.benchmark"
MOST_ROUNDS, MOST_WORLDS = 1000, 2**20
CAPTION = (
    "cbet-jax: with view, panorama, hashes, both counts, reward, resets and fresh levels; the "
    "paper's three worlds mixed, unless one is named. minigrid: the same, one process, views "
    "only. navix: its own KeyCorridorS3R3 with automatic resets, no occlusion, panorama or "
    "counts. "
    "xminigrid: its own, with automatic resets, views without occlusion, no panorama or counts. "
    "gym_vector: with numpy out, resets, success and unique interactions."
)
GROUPS: dict[str, Callable[[BenchmarkOptions], list[Measurement]]] = {
    "worlds": world_measurements.measure_worlds,
    "environments": world_measurements.measure_environments,
    "gymnasium": gymnasium_measurements.measure_gymnasium,
    "bounds": world_measurements.measure_bounds,
    "counts": world_measurements.measure_counts,
    "training": training_measurements.measure_training,
    "phases": training_measurements.measure_phases,
    "scaling": training_measurements.measure_scaling,
    "compilation": training_measurements.measure_compilation,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for, print a table and write it as JSON."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors(UnknownEnvironment):
        options: BenchmarkOptions = cli.parse(BenchmarkOptions, arguments, MODULE)
        path = check(options)
        rows: list[Measurement] = []
        use_cpu()
        for group in options.groups:
            with console.status(f"measuring {group}"):
                rows += GROUPS[group](options)
        write(path, rows, arguments)
    show(console, rows)
    console.print(f"saved: {path}", soft_wrap=True, highlight=False)


def check(options: BenchmarkOptions) -> Path:
    """Return the file to write.

    Raises:
        UnknownEnvironment: no environment has that name.
        SettingsError: a group or preset is unknown, a number is out of range, or the file exists.
    """
    for group in options.groups:
        if group not in GROUPS:
            raise SettingsError(f"unknown group {group!r}; there are {', '.join(GROUPS)}")
    for name in (*options.presets, options.scaled):
        presets.named(name)
    for name in options.envs:
        find(name)
    for slots in options.capacities:
        CountSettings(capacity=slots)
    counted = (options.worlds, options.scaled_seeds, options.scaled_worlds)
    if min(options.rounds, len(options.capacities), *(min(n, default=0) for n in counted)) < 1:
        raise SettingsError("rounds, worlds, seeds and capacities must be at least 1, each given")
    check_between("rounds", options.rounds, 1, MOST_ROUNDS)
    for name, numbers in zip(("worlds", "scaled_seeds", "scaled_worlds"), counted, strict=True):
        check_between(name, max(numbers), 1, MOST_WORLDS)
    for worlds in options.scaled_worlds:
        replace(PRESETS[options.scaled].train, worlds=worlds)  # refuses what does not divide
    path = options.out or Path("runs") / f"benchmark-{datetime.now():%Y%m%d-%H%M%S}.json"
    if path.exists():
        raise SettingsError(f"{path} exists already: choose another file")
    check_room(path.parent)
    return path


def write(path: Path, rows: Sequence[Measurement], arguments: Sequence[str]) -> None:
    """Write the rows and what they were measured on."""
    of_rows = [
        {**row._asdict(), "ratios": {peer: r._asdict() for peer, r in row.ratios.items()}}
        for row in rows
    ]
    content = {"machine": manifest.describe(tuple(arguments)), "rows": of_rows}
    with creating(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n")


def decimals(value: float) -> str:
    """Return a number as the table shows it."""
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.2g}"


def show(console: Console, rows: Sequence[Measurement]) -> None:
    """Print the rows."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=CAPTION, caption_justify="left")
    table.add_column("measured")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("times as much as")
    for row in rows:
        ratios = ", ".join(f"{ratio} x {peer}" for peer, ratio in row.ratios.items())
        table.add_row(row.what, decimals(row.value), row.unit, ratios)
    console.print(table)


if __name__ == "__main__":
    main()
