"""Make, save, draw and print the table of an evaluation."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cbet_jax.analysis import figures, intervals
from cbet_jax.analysis.intervals import Estimate
from envs.names import ACTIONS
from experiments.common.outputs import write_new, write_table

if TYPE_CHECKING:
    from cbet_jax.evaluate import Episodes

# Names of policies without training:
FROZEN = "frozen"  # the pre-trained policy, with a new network of the task
UNTRAINED = "untrained"  # a new network ("random" in the published evaluation)
UNIFORM = "uniform"  # uniformly random actions
ALL_SEEDS = "all"  # in place of a seed: the mean over seeds, its interval from their spread
ALL_WORLDS = "all"  # in place of an environment: the episodes of all environments together
MEASURES = {  # column of the table -> title and digits in summaries and pictures
    "success_rate": ("success rate", 2),
    "unique_interactions": ("unique interactions", 1),
    "extrinsic_return": ("return", 2),
    "episode_length": ("steps", 0),
}
MAIN = ("unique_interactions", "success_rate")  # shown; where one is missing, the return, too


def header(actions: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a table, given the names of the actions."""
    return (
        *("method", "seed", "environment", "episodes"),
        *(f"{name}{end}" for name in MEASURES for end in ("", "_low", "_high")),
        *(f"share_of_{action}" for action in actions),
        *("action_entropy", "checkpoint_frames", "evaluation_seed"),
    )


class EvaluationRow(NamedTuple):
    """The results of one policy in one world."""

    method: str
    seed: str
    environment: str
    episodes: int
    measured: dict[str, Estimate]  # column -> mean over the episodes
    actions: tuple[float, ...]  # share of each action
    entropy: float  # entropy of these shares over a uniform choice's


def rows(
    method: str,
    first_seed: int,
    environment: str,
    episodes: "Episodes",
    unmeasured: Sequence[str] = (),
) -> list[EvaluationRow]:
    """Return a row for each seed, and one for all seeds if there are several.

    Args:
        method: the policy's name.
        first_seed: the seed of the first entry.
        environment: the world's name.
        episodes: `[seeds, episodes]`.
        unmeasured: measures that the world lacks (`World.unmeasured`).
    """
    seeds, count = episodes.success.shape
    table = []
    for index in range(seeds):
        found = {name: np.asarray(leaf[index]) for name, leaf in episodes._asdict().items()}
        shares = found["actions"].sum(axis=0) / found["actions"].sum()
        measured = {
            "extrinsic_return": intervals.mean(found["extrinsic_return"]),
            "episode_length": intervals.mean(found["length"]),
        }
        if "success" not in unmeasured:
            measured["success_rate"] = intervals.share(found["success"])
        if "interactions" not in unmeasured:
            measured["unique_interactions"] = intervals.mean(found["interactions"])
        entropy = intervals.normalized_entropy(shares)
        what = method, str(first_seed + index), environment, count
        table.append(EvaluationRow(*what, measured, tuple(map(float, shares)), entropy))
    return [*table, _over_seeds(table)] if seeds > 1 else table


def _over_seeds(table: Sequence[EvaluationRow]) -> EvaluationRow:
    """Return the mean over seeds, its intervals from their spread."""
    measured = {
        name: intervals.mean(np.array([row.measured[name].value for row in table]))
        for name in table[0].measured
    }
    episodes = sum(row.episodes for row in table)
    if rate := measured.get("success_rate"):
        if np.isclose(rate.low, rate.high):  # equal seeds say nothing of a spread, but episodes do
            levels = table[0].episodes  # all seeds play the same
            rate = intervals.share(np.arange(levels) < round(rate.value * levels))
        measured["success_rate"] = Estimate(rate.value, max(rate.low, 0.0), min(rate.high, 1.0))
    return table[0]._replace(
        seed=ALL_SEEDS,
        episodes=episodes,
        measured=measured,
        actions=tuple(np.mean([row.actions for row in table], axis=0).tolist()),
        entropy=float(np.mean([row.entropy for row in table])),
    )


def write(
    root: Path, table: Sequence[EvaluationRow], frames: Mapping[str, int], seed: int
) -> tuple[Path, Path]:
    """Save the table and its picture in a folder under a new name; arguments as in `save`."""
    create = partial(save, table=table, frames=frames, seed=seed)
    path = write_new(root / "evaluation.csv", create, ".png")
    return path, _draw(path.with_suffix(".png"), table, frames)


def save(path: Path, table: Sequence[EvaluationRow], frames: Mapping[str, int], seed: int) -> None:
    """Save the table into a file, with empty cells for missing measures.

    Args:
        path: the file.
        table: its rows.
        frames: seed -> frames of its policy's training; means and random play have the largest.
        seed: the evaluation's.
    """
    missing, actions = ("", "", ""), len(table[0].actions)
    names = ACTIONS if actions == len(ACTIONS) else tuple(map(str, range(actions)))
    done = {**frames, ALL_SEEDS: max(frames.values())}
    lines = (
        (
            *(row.method, row.seed, row.environment, row.episodes),
            *chain.from_iterable(row.measured.get(name, missing) for name in MEASURES),
            *(*row.actions, row.entropy),
            # The seed of random play is no policy's.
            *(done[ALL_SEEDS if row.method == UNIFORM else row.seed], seed),
        )
        for row in table
    )
    write_table(path, header(names), lines)


def show(console: Console, table: Sequence[EvaluationRow], title: str) -> None:
    """Print the results of each policy (a column) in all worlds and in each (a row)."""
    chosen = over_seeds(table)
    methods, environments = (dict.fromkeys(names) for names in zip(*chosen, strict=True))
    console.print(f"{title} [95 % intervals]:", soft_wrap=True, markup=False)
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("an episode", no_wrap=True)
    for method in methods:
        shown.add_column(method, justify="right")
    for name in shown_measures(table):
        heading, digits = MEASURES[name]
        shown.add_row(Text(heading, style="bold"))
        for environment in sorted(environments, key=lambda world: world != ALL_WORLDS):
            rows = (chosen[method, environment].measured[name] for method in methods)
            world = "all worlds" if environment == ALL_WORLDS else environment
            shown.add_row(Text(world), *(Text(row.text(digits)) for row in rows))
    console.print(shown)


def shown_measures(table: Sequence[EvaluationRow]) -> list[str]:
    """Return the measures that summaries and pictures show."""
    found = [name for name in MAIN if all(name in row.measured for row in table)]
    return found if len(found) == len(MAIN) else [*found, "extrinsic_return"]


def over_seeds(table: Sequence[EvaluationRow]) -> dict[tuple[str, str], EvaluationRow]:
    """Return the row of each policy in each world: of all seeds, where there are several."""
    return {(row.method, row.environment): row for row in table}


def span(frames: Collection[int]) -> str:
    """Return the range of training frames as text."""
    low, high = min(frames), max(frames)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _draw(path: Path, table: Sequence[EvaluationRow], frames: Mapping[str, int]) -> Path:
    """Draw one bar for each policy in each world."""
    chosen = over_seeds(table)
    methods, environments = (dict.fromkeys(names) for names in zip(*chosen, strict=True))
    panels = {
        MEASURES[name][0] + ("" if name == "success_rate" else " per episode"): {
            method: [chosen[method, world].measured[name] for world in environments]
            for method in methods
        }
        for name in shown_measures(table)
    }
    title = f"Evaluation after {span(frames.values())} frames (whiskers: 95 % confidence intervals)"
    return figures.draw_bars(path, title, panels, list(environments))
