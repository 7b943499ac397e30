"""The table of walks: a row for each policy, seed and scene, and its pictures."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from cbet_jax.analysis import intervals
from cbet_jax.analysis.intervals import Estimate
from cbet_jax.runs.saved_policies import UNIFORM
from envs.habitat.simulator import FloorMap
from experiments.common.outputs import write_table
from experiments.evaluation import walk_pictures, walks
from experiments.evaluation.evaluation_table import ALL_SEEDS
from experiments.evaluation.walk_pictures import Pretraining
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
    places: dict[str, dict[int, Places]]  # policy -> seed -> its walks


class WalkConditions(NamedTuple):
    """How walks were played: the last columns of the table."""

    simulator: str
    steps: int  # of an episode
    random_starts: bool
    frames: Mapping[str, int]  # policy -> those of its checkpoint (0: nothing was learnt)
    seed: int  # of the evaluation


class WalkRow(NamedTuple):
    """How far one policy came in one scene."""

    policy: str
    seed: str  # or `ALL_SEEDS`: means over them, the interval from their spread
    scene: str
    episodes: int
    positions: Estimate  # distinct ones, an episode
    together: float  # distinct ones in all episodes of a seed
    times_uniform: float  # mean an episode, over that of random actions


def rows(walked: Walked) -> Iterator[WalkRow]:
    """Yield a row for each policy and seed in a scene, and one for all seeds of several."""
    (random,) = walked.places[UNIFORM].values()
    usual = float(np.mean([walks.distinct(episode) for episode in random]))
    for policy, seeds in walked.places.items():
        own = []
        for seed, places in seeds.items():
            found = intervals.mean(np.array([walks.distinct(episode) for episode in places]))
            together, times = walks.distinct(places), found.value / usual
            row = WalkRow(policy, str(seed), walked.scene, len(places), found, together, times)
            own.append(row)
        yield from own
        if len(own) > 1:
            yield WalkRow(
                policy,
                ALL_SEEDS,
                walked.scene,
                sum(row.episodes for row in own),
                intervals.mean(np.array([row.positions.value for row in own])),
                float(np.mean([row.together for row in own])),
                float(np.mean([row.times_uniform for row in own])),
            )


def of_policies(table: Iterable[WalkRow]) -> dict[tuple[str, str], WalkRow]:
    """Return one row for each scene and policy: that of all seeds, if there are several."""
    return {(row.scene, row.policy): row for row in table}  # it is the last of a policy's


def line(walked: Walked) -> str:
    """Return a scene's rows as one line."""
    found = of_policies(rows(walked)).values()
    means = [f"{row.policy} {row.positions.value:.1f}" for row in found]
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
        numbers = (row.positions.text(1), f"{row.together:,.0f}", f"{row.times_uniform:.2f}")
        shown.add_row(row.scene, row.policy, row.seed, *numbers)
    console.print(shown)


def save(path: Path, table: Sequence[WalkRow], conditions: WalkConditions) -> None:
    """Save the table; the file is complete or as it was, whenever the process dies."""

    def last(row: WalkRow) -> Iterable[object]:
        frames = conditions.frames.get(row.policy, 0)
        return (conditions._asdict() | {"frames": frames}).values()

    lines = (
        (*row[:4], *row.positions, row.together, row.times_uniform, *last(row)) for row in table
    )
    write_table(path, HEADER, lines, again=True)


def draw(
    path: Path,
    walked: Sequence[Walked],
    table: Sequence[WalkRow],
    conditions: WalkConditions,
    pretraining: Sequence[Pretraining],
) -> Iterator[Path]:
    """Draw the pictures of a table, and yield their files, which are named after its.

    Args:
        path: of the table.
        walked: the walks in each scene.
        table: their rows.
        conditions: how they were played.
        pretraining: what the policies were trained in.
    """
    known = sorted(set(conditions.frames.values()))
    frames = f"after {' to '.join(f'{at:,}' for at in dict.fromkeys((known[0], known[-1])))} frames"
    title = f"Distinct positions {frames} (whiskers: 95 % confidence intervals)"
    scenes = [each.scene for each in walked]
    yield walk_pictures.bars(path.with_suffix(".png"), title, panels(table), scenes)
    drawn = {
        each.scene: (
            each.drawn,
            {name: next(iter(seeds.values())) for name, seeds in each.places.items()},
        )
        for each in walked
    }
    picture = path.with_name(f"{path.stem}-maps.png")
    yield walk_pictures.heat_maps(picture, drawn, f"Where the policies were {frames}")
    together = {
        each.scene: {
            name: np.concatenate(list(seeds.values())) for name, seeds in each.places.items()
        }
        for each in walked
    }
    picture = path.with_name(f"{path.stem}-coverage.png")
    title = f"Distinct positions in an episode {frames}, all seeds (95 % confidence intervals)"
    yield walk_pictures.coverage(
        picture, title, walk_pictures.of_pretraining(pretraining), together
    )


def panels(table: Sequence[WalkRow]) -> dict[str, dict[str, list[Estimate]]]:
    """Return one bar for each scene and policy."""
    together = "distinct positions of all episodes of a seed"
    found: dict[str, dict[str, list[Estimate]]] = {
        "distinct positions an episode": {},
        together: {},
    }
    for row in of_policies(table).values():
        value = float(row.together)
        for panel, bar in zip(found, (row.positions, Estimate(value, value, value)), strict=True):
            found[panel].setdefault(row.policy, []).append(bar)
    return found
