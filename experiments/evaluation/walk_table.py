"""The table of walks: a row for each policy, seed and scene, and its pictures."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from cbet_jax.analysis import figures, intervals
from cbet_jax.analysis.intervals import Estimate
from experiments.common.outputs import write_table
from experiments.evaluation import walk_pictures, walks
from experiments.evaluation.evaluation_table import ALL_SEEDS, span
from experiments.evaluation.walk_pictures import Pretraining
from experiments.evaluation.walks import Walked

ALL_SCENES = "all"  # stands where a scene's name would: the mean of all scenes
PICTURES = BARS, MAPS, COVERAGE = ".png", "-maps.png", "-coverage.png"  # after the table's stem
HEADER = (
    *("policy", "seed", "scene", "episodes", "positions", "positions_low", "positions_high"),
    *("positions_of_all_episodes", "simulator", "steps", "random_starts"),
    *("checkpoint_frames", "evaluation_seed"),
)


class WalkConditions(NamedTuple):
    """How walks were played: the last columns of the table."""

    simulator: str
    steps: int  # an episode's length
    random_starts: bool
    frames: Mapping[str, int]  # policy -> those of its checkpoint (0: nothing was learnt)
    seed: int  # the evaluation's


class WalkRow(NamedTuple):
    """How far one policy came in one scene."""

    policy: str
    seed: str  # or `ALL_SEEDS`: means over them, the interval from their spread
    scene: str  # or `ALL_SCENES`
    episodes: int
    positions: Estimate  # distinct ones, an episode
    together: float  # distinct ones in all episodes of a seed


def rows(walked: Walked) -> Iterator[WalkRow]:
    """Yield a row for each policy and seed in a scene."""
    for policy, seeds in walked.places.items():
        for seed, places in seeds.items():
            found = intervals.mean(np.array([walks.distinct(episode) for episode in places]))
            together = walks.distinct(places)
            yield WalkRow(policy, str(seed), walked.scene, len(places), found, together)


def with_means(table: Iterable[WalkRow]) -> list[WalkRow]:
    """Return rows of single seeds with their means: over the scenes, and over the seeds.

    The means of all scenes are last, and those of several seeds follow these.
    """
    groups: dict[str, dict[str, list[WalkRow]]] = {}  # scene -> policy -> a row for each seed
    for row in table:
        groups.setdefault(row.scene, {}).setdefault(row.policy, []).append(row)
    if len(groups) > 1:
        groups[ALL_SCENES] = _over_scenes(groups)
    return [
        row
        for policies in groups.values()
        for own in policies.values()
        for row in (*own, *([_over_seeds(own)] if len(own) > 1 else []))
    ]


def _over_scenes(groups: Mapping[str, Mapping[str, list[WalkRow]]]) -> dict[str, list[WalkRow]]:
    """Return the mean of all scenes for each policy and seed, which has played in all of them.

    An interval's width is the mean of theirs, which holds however the scenes depend on each other:
    they are played with the same random numbers.
    """
    found: dict[str, list[WalkRow]] = {}
    for policy, own in next(iter(groups.values())).items():
        scenes = [{row.seed: row for row in each[policy]} for each in groups.values()]
        for seed in (row.seed for row in own):
            same = [rows[seed] for rows in scenes]
            means, lows, _ = np.array([row.positions for row in same]).T
            mean, half = float(means.mean()), float((means - lows).mean())
            estimate = Estimate(mean, mean - half, mean + half)
            found.setdefault(policy, []).append(_mean(same, seed, ALL_SCENES, estimate))
    return found


def _over_seeds(own: Sequence[WalkRow]) -> WalkRow:
    """Return the mean over seeds, its interval from their spread."""
    estimate = intervals.mean(np.array([row.positions.value for row in own]))
    return _mean(own, ALL_SEEDS, own[0].scene, estimate)


def _mean(own: Sequence[WalkRow], seed: str, scene: str, positions: Estimate) -> WalkRow:
    return WalkRow(
        own[0].policy,
        seed,
        scene,
        sum(row.episodes for row in own),
        positions,
        float(np.mean([row.together for row in own])),
    )


def of_policies(table: Iterable[WalkRow]) -> dict[tuple[str, str], WalkRow]:
    """Return one row for each scene and policy: that of all seeds, if there are several."""
    return {(row.scene, row.policy): row for row in table}  # it is the last of a policy's


def line(walked: Walked) -> str:
    """Return a scene's rows as one line."""
    found = of_policies(with_means(rows(walked))).values()
    means = [f"{row.policy} {row.positions.value:.1f}" for row in found]
    each = [places for seeds in walked.places.values() for places in seeds.values()]
    cut = np.isnan(np.concatenate(each)[:, -1, 0]).sum()
    short = f" ({cut} episodes were cut short: their simulators were lost)" if cut else ""
    return f"{walked.scene}: positions an episode: {', '.join(means)}{short}"


def show(console: Console, table: Sequence[WalkRow], title: str) -> None:
    """Print a summary, then how far each policy came in each scene."""
    chosen = of_policies(table)
    scenes, policies = (list(dict.fromkeys(names)) for names in zip(*chosen, strict=True))
    where = "mean of all scenes" if scenes[-1] == ALL_SCENES else scenes[-1]
    console.print(
        f"{title}; distinct positions an episode, {where} [95 % intervals over the seeds; of one "
        "seed over its episodes]:",
        soft_wrap=True,
        markup=False,
    )
    summary = Table.grid(padding=(0, 2))
    for policy in policies:
        row = chosen[scenes[-1], policy]
        summary.add_row(f"  {policy}", row.positions.text(1), _difference(table, policy))
    console.print(summary)
    if scenes[-1] != ALL_SCENES:
        return
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("scene", no_wrap=True)
    for policy in policies:
        shown.add_column(policy, no_wrap=True, justify="right")
    for scene in scenes:
        shown.add_row(scene, *(f"{chosen[scene, each].positions.value:.1f}" for each in policies))
    console.print(shown)


def _difference(table: Sequence[WalkRow], policy: str) -> str:
    """Say how a policy differs from the first (Welch's interval), if both have several seeds."""
    last, first = table[-1].scene, table[0].policy
    seeds = {
        name: np.array([
            row.positions.value
            for row in table
            if (row.scene, row.policy) == (last, name) and row.seed != ALL_SEEDS
        ])
        for name in (first, policy)
    }  # fmt: skip
    if policy == first or min(map(len, seeds.values())) < 2:
        return ""
    return f"difference from {first} {intervals.difference(seeds[policy], seeds[first]).text(1)}"


def save(
    path: Path, table: Sequence[WalkRow], conditions: WalkConditions, *, again: bool = False
) -> Path:
    """Save the table atomically; only `again` replaces a file."""
    played = conditions._asdict()
    lines = (
        (
            *(*row[:4], *row.positions, row.together),
            *(played | {"frames": conditions.frames.get(row.policy, 0)}).values(),
        )
        for row in table
    )
    return write_table(path, HEADER, lines, again=again)


def draw(
    path: Path,
    walked: Sequence[Walked],
    table: Sequence[WalkRow],
    conditions: WalkConditions,
    pretraining: Sequence[Pretraining],
) -> Iterator[Path]:
    """Draw the pictures of walks, and yield their files, named after the table's `path`."""
    frames = f"after {span(conditions.frames.values())} frames"
    scenes = list(dict.fromkeys(row.scene for row in table))
    title = f"Distinct positions {frames} (whiskers: 95 % confidence intervals)"
    yield figures.draw_bars(path.with_suffix(BARS), title, panels(table), scenes)
    picture = path.with_name(path.stem + MAPS)
    yield walk_pictures.heat_maps(picture, walked, f"Where each policy's first seed was {frames}")
    picture = path.with_name(path.stem + COVERAGE)
    title = f"Distinct positions in an episode {frames}, all seeds (95 % confidence intervals)"
    yield walk_pictures.coverage(picture, title, walk_pictures.of_pretraining(pretraining), walked)


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
