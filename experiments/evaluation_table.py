"""The table of an evaluation: its rows, its file, its picture, and how it is shown."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from cbet_jax import figures, statistics
from cbet_jax.evaluate import Episodes
from cbet_jax.statistics import Estimate

ALL = "all"  # in place of a seed: the mean over seeds, its interval from their spread
HEADER = (
    *("method", "seed", "environment", "episodes"),
    *("success_rate", "success_rate_low", "success_rate_high"),
    *("unique_interactions", "unique_interactions_low", "unique_interactions_high"),
    *("checkpoint_frames", "evaluation_seed"),
)


class Row(NamedTuple):
    """What one policy reached in one world."""

    method: str
    seed: str
    environment: str
    episodes: int
    success: Estimate  # share of episodes
    interactions: Estimate  # unique ones, an episode


def rows(method: str, first_seed: int, environment: str, episodes: Episodes) -> list[Row]:
    """Returns a row for each seed and, where there are several, one for all of them.

    Args:
        method: name of the policy.
        first_seed: the seed of the first entry.
        environment: name of the world.
        episodes: `[seeds, episodes]`.
    """
    success = np.asarray(episodes.success)
    interactions = np.asarray(episodes.interactions)
    seeds, count = success.shape
    table = [
        Row(
            method,
            str(first_seed + seed),
            environment,
            count,
            statistics.share(success[seed]),
            statistics.mean(interactions[seed]),
        )
        for seed in range(seeds)
    ]
    if seeds > 1:
        rate = statistics.mean(success.mean(axis=1))
        within = Estimate(rate.value, max(rate.low, 0.0), min(rate.high, 1.0))  # it is a share
        unique = statistics.mean(interactions.mean(axis=1))
        table.append(Row(method, ALL, environment, seeds * count, within, unique))
    return table


def write(root: Path, table: Sequence[Row], frames: int, seed: int) -> tuple[Path, Path]:
    """Saves the table and its picture under a new name; nothing is overwritten.

    Args:
        root: the run's directory.
        table: the rows.
        frames: of the checkpoint.
        seed: of the evaluation.
    """
    path = _new_path(root)
    with open(path, "x", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for row in table:
            numbers = [f"{number:.6g}" for number in (*row.success, *row.interactions)]
            writer.writerow([*row[:4], *numbers, frames, seed])
    return path, _draw(path.with_suffix(".png"), table, frames)


def show(console: Console, table: Sequence[Row], title: str) -> None:
    """Prints the table."""
    shown = Table(title=f"{title} (95 % confidence intervals)", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("method", "seed", "environment"):
        shown.add_column(heading, no_wrap=True)
    for heading in ("success rate", "unique interactions"):
        shown.add_column(heading, no_wrap=True, justify="right")
    for row in table:
        success, interactions = row.success.text(2), row.interactions.text(1)
        shown.add_row(row.method, row.seed, row.environment, success, interactions)
    console.print(shown)


def _new_path(root: Path) -> Path:
    number = 1
    path = root / "evaluation.csv"
    while path.exists():
        number += 1
        path = root / f"evaluation-{number}.csv"
    return path


def _draw(path: Path, table: Sequence[Row], frames: int) -> Path:
    """Draws one bar for each policy in each world: of all seeds, where there are several."""
    last = {(row.method, row.environment): row for row in table}
    methods = list(dict.fromkeys(row.method for row in table))
    environments = list(dict.fromkeys(row.environment for row in table))
    chosen = {method: [last[method, name] for name in environments] for method in methods}
    panels = {
        "unique interactions per episode": {
            method: [row.interactions for row in found] for method, found in chosen.items()
        },
        "success rate": {
            method: [row.success for row in found] for method, found in chosen.items()
        },
    }
    title = f"Evaluation after {frames:,} frames (whiskers: 95 % confidence intervals)"
    return figures.bars(path, title, panels, environments)
