"""The table of an evaluation: its rows, its file, its picture, and how it is shown."""

import csv
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from cbet_jax.analysis import figures, intervals
from cbet_jax.analysis.intervals import Estimate
from cbet_jax.evaluate import Episodes
from envs.minigrid.rules import ACTIONS
from experiments.common.outputs import unused

ALL = "all"  # in place of a seed: the mean over seeds, its interval from their spread; in place
# of an environment: the episodes of all environments together
HEADER = (
    *("method", "seed", "environment", "episodes"),
    *("success_rate", "success_rate_low", "success_rate_high"),
    *("unique_interactions", "unique_interactions_low", "unique_interactions_high"),
    *("extrinsic_return", "extrinsic_return_low", "extrinsic_return_high"),
    *("episode_length", "episode_length_low", "episode_length_high"),
    *(f"share_of_{action}" for action in ACTIONS),
    "action_entropy",
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
    extrinsic_return: Estimate  # of an episode
    length: Estimate  # of an episode, in steps
    actions: tuple[float, ...]  # share of each in all that were played
    entropy: float  # of those shares, over that of a uniform choice


def rows(method: str, first_seed: int, environment: str, episodes: Episodes) -> list[Row]:
    """Returns a row for each seed and, where there are several, one for all of them.

    Args:
        method: name of the policy.
        first_seed: the seed of the first entry.
        environment: name of the world.
        episodes: `[seeds, episodes]`.
    """
    episodes = jax.tree.map(np.asarray, episodes)
    seeds, count = episodes.success.shape
    table = [
        _row(method, str(first_seed + seed), environment, jax.tree.map(lambda x: x[seed], episodes))  # noqa: B023
        for seed in range(seeds)
    ]
    if seeds > 1:
        table.append(_over_seeds(table, seeds * count))
    return table


def _row(method: str, seed: str, environment: str, episodes: Episodes) -> Row:
    chosen = np.asarray(episodes.actions).sum(axis=0)
    shares = chosen / chosen.sum()
    return Row(
        method,
        seed,
        environment,
        len(np.asarray(episodes.success)),
        success=intervals.share(np.asarray(episodes.success)),
        interactions=intervals.mean(np.asarray(episodes.interactions)),
        extrinsic_return=intervals.mean(np.asarray(episodes.extrinsic_return)),
        length=intervals.mean(np.asarray(episodes.length)),
        actions=tuple(map(float, shares)),
        entropy=intervals.normalized_entropy(shares),
    )


def _over_seeds(table: Sequence[Row], episodes: int) -> Row:
    mean = lambda name: intervals.mean(np.array([getattr(row, name).value for row in table]))  # noqa: E731
    rate = mean("success")
    return Row(
        table[0].method,
        ALL,
        table[0].environment,
        episodes,
        success=Estimate(rate.value, max(rate.low, 0.0), min(rate.high, 1.0)),  # it is a share
        interactions=mean("interactions"),
        extrinsic_return=mean("extrinsic_return"),
        length=mean("length"),
        actions=tuple(np.mean([row.actions for row in table], axis=0).tolist()),
        entropy=float(np.mean([row.entropy for row in table])),
    )


def write(root: Path, table: Sequence[Row], frames: int, seed: int) -> tuple[Path, Path]:
    """Saves the table and its picture under a new name; nothing is overwritten.

    Args:
        root: the run's directory.
        table: the rows.
        frames: of the checkpoint.
        seed: of the evaluation.
    """
    path = unused(root / "evaluation.csv")
    save(path, table, frames, seed)
    return path, _draw(path.with_suffix(".png"), table, frames)


def save(path: Path, table: Sequence[Row], frames: int, seed: int) -> None:
    """Saves the table into a new file.

    Args:
        path: the file.
        table: the rows.
        frames: of the checkpoint.
        seed: of the evaluation.
    """
    with open(path, "x", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for row in table:
            measured = (row.success, row.interactions, row.extrinsic_return, row.length)
            of_actions = (*row.actions, row.entropy)
            numbers = [f"{x:.6g}" for x in (*itertools.chain(*measured), *of_actions)]
            writer.writerow([*row[:4], *numbers, frames, seed])


def show(console: Console, table: Sequence[Row], title: str) -> None:
    """Prints what the policies reached, then how they played."""
    _print(
        console,
        f"{title} (intervals: 95 % confidence; interactions: unique ones)",
        {
            "success rate": [row.success.text(2) for row in table],
            "interactions": [row.interactions.text(1) for row in table],
        },
        table,
    )
    _print(
        console,
        "How they played: extrinsic return, steps, entropy of the actions (1: all alike)",
        {
            "return": [f"{row.extrinsic_return.value:.2f}" for row in table],
            "length": [f"{row.length.value:.0f}" for row in table],
            "entropy": [f"{row.entropy:.2f}" for row in table],
        },
        table,
    )


def _print(
    console: Console, title: str, columns: dict[str, list[str]], table: Sequence[Row]
) -> None:
    shown = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in ("method", "seed", "environment"):
        shown.add_column(heading, no_wrap=True)
    for heading in columns:
        shown.add_column(heading, no_wrap=True, justify="right")
    for row, *cells in zip(table, *columns.values(), strict=True):
        shown.add_row(row.method, row.seed, row.environment, *cells)
    console.print(shown)


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
