"""The table of walks: a row for each policy, seed and scene, and its pictures."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from cbet_jax.analysis import intervals
from cbet_jax.analysis.intervals import Estimate
from cbet_jax.config import RunSettings
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.saved_policies import UNIFORM
from envs.habitat.simulator import FloorMap
from experiments.common.outputs import unused, write_table
from experiments.evaluation import walk_pictures, walks
from experiments.evaluation.walks import Places

HEADER = (
    *("policy", "seed", "scene", "episodes", "positions", "positions_low", "positions_high"),
    *("positions_of_all_episodes", "times_uniform", "simulator", "steps", "random_starts"),
    *("checkpoint_frames", "evaluation_seed"),
)


class Walked(NamedTuple):
    """The walks in one scene."""

    scene: str
    drawn: FloorMap
    places: dict[str, list[Places]]  # policy -> one entry for each of its seeds


class WalkConditions(NamedTuple):
    """How walks were played: the last columns of the table."""

    simulator: str
    steps: int  # of an episode
    random_starts: bool
    frames: int  # of the checkpoint
    seed: int  # of the evaluation


class WalkRow(NamedTuple):
    """How far one policy came in one scene."""

    policy: str
    seed: str
    scene: str
    episodes: int
    positions: Estimate  # distinct ones, an episode
    together: int  # distinct ones in all episodes
    times_uniform: float  # mean an episode, over that of random actions


def rows(walked: Walked, settings: RunSettings) -> Iterator[WalkRow]:
    """Yield a row for each policy and seed in a scene."""
    (random,) = walked.places[UNIFORM]
    usual = float(np.mean([walks.distinct(episode) for episode in random]))
    for policy, seeds in walked.places.items():
        first = 0 if policy == UNIFORM else settings.first_seed
        for seed, places in enumerate(seeds, first):
            found = intervals.mean(np.array([walks.distinct(episode) for episode in places]))
            yield WalkRow(
                policy,
                str(seed),
                walked.scene,
                len(places),
                found,
                walks.distinct(places),
                found.value / usual,
            )


def line(walked: Walked, settings: RunSettings) -> str:
    """Return a scene's rows as one line."""
    means = [f"{row.policy} {row.positions.value:.1f}" for row in rows(walked, settings)]
    return f"{walked.scene}: positions an episode: {', '.join(means)}"


def show(console: Console, table: Sequence[WalkRow], title: str) -> None:
    """Print how far the policies came."""
    shown = Table(
        title=f"{title} (intervals: 95 % confidence)", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for heading in ("scene", "policy", "seed"):
        shown.add_column(heading, no_wrap=True)
    for heading in ("positions an episode", "in all", "x uniform"):
        shown.add_column(heading, no_wrap=True, justify="right")
    for row in table:
        numbers = (row.positions.text(1), f"{row.together:,}", f"{row.times_uniform:.2f}")
        shown.add_row(row.scene, row.policy, row.seed, *numbers)
    console.print(shown)


def save(
    folder: Path,
    directory: RunDirectory,
    settings: RunSettings,
    walked: Sequence[Walked],
    table: Sequence[WalkRow],
    conditions: WalkConditions,
) -> Iterator[Path]:
    """Write the table and its pictures under new names, and yield the files.

    Args:
        folder: of the files.
        directory: of the run.
        settings: of the run.
        walked: the walks in each scene.
        table: their rows.
        conditions: how they were played.
    """
    path = unused(folder / "habitat-evaluation.csv")
    lines = (
        (*row[:4], *row.positions, row.together, row.times_uniform, *conditions) for row in table
    )
    yield write_table(path, HEADER, lines)
    frames = f"after {conditions.frames:,} frames"
    title = f"Distinct positions {frames} (whiskers: 95 % confidence intervals)"
    scenes = [each.scene for each in walked]
    yield walk_pictures.bars(path.with_suffix(".png"), title, panels(table), scenes)
    drawn = {
        each.scene: (each.drawn, {name: seeds[0] for name, seeds in each.places.items()})
        for each in walked
    }
    picture = path.with_name(f"{path.stem}-maps.png")
    yield walk_pictures.heat_maps(picture, drawn, f"Where the policies were {frames}")
    trained_in = Path(settings.environments[0]).name.partition(".")[0]
    method = settings.train.method
    pretraining = walk_pictures.of_pretraining(directory.metrics, method, trained_in)
    together = {
        each.scene: {name: np.concatenate(seeds) for name, seeds in each.places.items()}
        for each in walked
    }
    picture = path.with_name(f"{path.stem}-coverage.png")
    title = f"Distinct positions in an episode {frames}, all seeds (95 % confidence intervals)"
    yield walk_pictures.coverage(picture, title, pretraining, together)


def panels(table: Sequence[WalkRow]) -> dict[str, dict[str, list[Estimate]]]:
    """Return one bar for each policy, or for each of its seeds where it has several."""
    together = "distinct positions of all episodes"
    found: dict[str, dict[str, list[Estimate]]] = {
        "distinct positions an episode": {},
        together: {},
    }
    seeds = Counter(policy for policy, _ in {(row.policy, row.seed) for row in table})
    for row in table:
        name = f"{row.policy}, seed {row.seed}" if seeds[row.policy] > 1 else row.policy
        value = float(row.together)
        for panel, bar in zip(found, (row.positions, Estimate(value, value, value)), strict=True):
            found[panel].setdefault(name, []).append(bar)
    return found
