"""The table of an evaluation: its rows, its file, its picture, and how it is shown."""

import csv
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from cbet_jax.analysis import figures, intervals
from cbet_jax.analysis.intervals import Estimate
from cbet_jax.evaluate import Episodes
from cbet_jax.runs.atomic_write import creating
from envs.minigrid.rules import ACTIONS
from experiments.common.outputs import write_new

ALL_SEEDS = "all"  # in place of a seed: the mean over seeds, its interval from their spread
ALL_WORLDS = "all"  # in place of an environment: the episodes of all environments together


def header(actions: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a table, given the names of the actions."""
    return (
        *("method", "seed", "environment", "episodes"),
        *("success_rate", "success_rate_low", "success_rate_high"),
        *("unique_interactions", "unique_interactions_low", "unique_interactions_high"),
        *("extrinsic_return", "extrinsic_return_low", "extrinsic_return_high"),
        *("episode_length", "episode_length_low", "episode_length_high"),
        *(f"share_of_{action}" for action in actions),
        "action_entropy",
        *("checkpoint_frames", "evaluation_seed"),
    )


HEADER = header(ACTIONS)  # of gridworlds
NOT_MEASURED = Estimate(np.nan, np.nan, np.nan)
#: of a row, in summaries and pictures -> title, digits
MAIN = {"interactions": ("unique interactions", 1), "success": ("success rate", 2)}
WITHOUT_THEM = {"extrinsic_return": ("return", 2)}  # too, where one of those is not measured


class EvaluationRow(NamedTuple):
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


def rows(
    method: str,
    first_seed: int,
    environment: str,
    episodes: Episodes,
    unmeasured: Sequence[str] = (),
) -> list[EvaluationRow]:
    """Return a row for each seed and, where there are several, one for all of them.

    Args:
        method: name of the policy.
        first_seed: the seed of the first entry.
        environment: name of the world.
        episodes: `[seeds, episodes]`.
        unmeasured: what means nothing in this world (`World.unmeasured`).
    """
    seeds, count = episodes.success.shape
    table = []
    for seed in range(seeds):
        of_seed = Episodes(*(leaf[seed] for leaf in episodes))
        row = _row(method, str(first_seed + seed), environment, of_seed)
        if "success" in unmeasured:
            row = row._replace(success=NOT_MEASURED)
        if "interactions" in unmeasured:
            row = row._replace(interactions=NOT_MEASURED)
        table.append(row)
    if seeds > 1:
        table.append(_over_seeds(table, seeds * count))
    return table


def _row(method: str, seed: str, environment: str, episodes: Episodes) -> EvaluationRow:
    """Return what one seed of a policy reached in one world."""
    chosen = np.asarray(episodes.actions).sum(axis=0)
    shares = chosen / chosen.sum()
    return EvaluationRow(
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


def _over_seeds(table: Sequence[EvaluationRow], episodes: int) -> EvaluationRow:
    """Return the mean over seeds, its intervals from their spread."""

    def mean(name: str) -> Estimate:
        return intervals.mean(np.array([getattr(row, name).value for row in table]))

    rate = mean("success")
    return EvaluationRow(
        table[0].method,
        ALL_SEEDS,
        table[0].environment,
        episodes,
        success=Estimate(rate.value, max(rate.low, 0.0), min(rate.high, 1.0)),  # it is a share
        interactions=mean("interactions"),
        extrinsic_return=mean("extrinsic_return"),
        length=mean("length"),
        actions=tuple(np.mean([row.actions for row in table], axis=0).tolist()),
        entropy=float(np.mean([row.entropy for row in table])),
    )


def write(root: Path, table: Sequence[EvaluationRow], frames: int, seed: int) -> tuple[Path, Path]:
    """Save the table and its picture under a new name; nothing is overwritten.

    Args:
        root: the folder.
        table: the rows.
        frames: of the checkpoint.
        seed: of the evaluation.
    """

    def create(path: Path) -> None:
        with creating(path) as temporary:
            save(temporary, table, frames, seed)

    path = write_new(root / "evaluation.csv", create, ".png")
    return path, _draw(path.with_suffix(".png"), table, frames)


def save(path: Path, table: Sequence[EvaluationRow], frames: int, seed: int) -> None:
    """Save the table into a file. What is not measured has empty cells.

    Args:
        path: the file.
        table: the rows.
        frames: of the checkpoint.
        seed: of the evaluation.
    """
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        actions = len(table[0].actions)
        is_gridworld = actions == len(ACTIONS)
        writer.writerow(HEADER if is_gridworld else header([str(x) for x in range(actions)]))
        for row in table:
            measured = (row.success, row.interactions, row.extrinsic_return, row.length)
            of_actions = (*row.actions, row.entropy)
            numbers = (*itertools.chain(*measured), *of_actions)
            cells = ["" if np.isnan(x) else f"{x:.6g}" for x in numbers]
            writer.writerow([*row[:4], *cells, frames, seed])


def show(console: Console, table: Sequence[EvaluationRow], title: str) -> None:
    """Print a summary, then what each policy reached in each world."""
    chosen = over_seeds(table)
    methods, environments = zip(*chosen, strict=True)
    whole = ALL_WORLDS if ALL_WORLDS in environments else environments[-1]
    where = "all worlds" if whole == ALL_WORLDS else whole
    console.print(f"{title}, {where} [95 % intervals]:", soft_wrap=True, markup=False)
    summary = Table.grid(padding=(0, 2))
    for method in dict.fromkeys(methods):
        row = chosen[method, whole]
        cells = [
            f"{title} {getattr(row, name).text(digits)}"
            for name, (title, digits) in _main(table).items()
        ]
        summary.add_row(f"  {method}", *cells)
    console.print(summary)
    if whole == ALL_WORLDS:
        _show_worlds(console, chosen)


def _show_worlds(console: Console, chosen: Mapping[tuple[str, str], EvaluationRow]) -> None:
    """Print one row for each world, and one column for each policy."""
    methods, environments = (dict.fromkeys(names) for names in zip(*chosen, strict=True))
    console.print("\nunique interactions an episode | success rate")
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("world", no_wrap=True)
    for method in methods:
        shown.add_column(method, no_wrap=True, justify="right")
    for environment in environments:
        rows = [chosen[method, environment] for method in methods]
        cells = [f"{row.interactions.value:.1f} | {row.success.value:.2f}" for row in rows]
        shown.add_row(environment, *cells)
    console.print(shown)


def _main(table: Sequence[EvaluationRow]) -> dict[str, tuple[str, int]]:
    """Return what summaries and pictures show of these rows: title and digits, by name."""
    measured = {
        name: shown
        for name, shown in MAIN.items()
        if not any(np.isnan(getattr(row, name).value) for row in table)
    }
    return measured if measured == MAIN else {**measured, **WITHOUT_THEM}


def over_seeds(table: Sequence[EvaluationRow]) -> dict[tuple[str, str], EvaluationRow]:
    """Return the row of each policy in each world: of all seeds, where there are several."""
    return {(row.method, row.environment): row for row in table}


def _draw(path: Path, table: Sequence[EvaluationRow], frames: int) -> Path:
    """Draw one bar for each policy in each world."""
    chosen = over_seeds(table)
    methods = list(dict.fromkeys(row.method for row in table))
    environments = list(dict.fromkeys(row.environment for row in table))
    columns = {method: [chosen[method, name] for name in environments] for method in methods}
    panels = {
        title if name == "success" else f"{title} per episode": {
            method: [getattr(row, name) for row in found] for method, found in columns.items()
        }
        for name, (title, _) in _main(table).items()
    }
    title = f"Evaluation after {frames:,} frames (whiskers: 95 % confidence intervals)"
    return figures.bars(path, title, panels, environments)
