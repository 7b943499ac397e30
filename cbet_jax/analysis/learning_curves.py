"""Learning curves: metrics over time, averaged over windows of frames, worlds and seeds.

All episodes count alike: an iteration's mean has the weight of its episodes.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cbet_jax.runs import metrics
from cbet_jax.runs.metrics_table import Column

CURVE_POINTS = 150  # a curve of more iterations is averaged over windows
ALL_WORLDS = "all worlds"
LAST = 10  # a run's end is its last tenth

Table = Mapping[str, Mapping[int, Column]]  # NAME or NAME/WORLD -> seed -> column
Lines = Mapping[str, Mapping[int, Column]]  # world, or `ALL_WORLDS` -> seed -> column


class Curve(NamedTuple):
    """One metric over time: its mean over the seeds, and a band around it."""

    frames: np.ndarray  # [points]
    mean: np.ndarray  # [points]
    low: np.ndarray  # [points]: the lowest seed, or an end of a confidence interval
    high: np.ndarray  # [points]


def first_round(column: Column, actors: int) -> int:
    """Return the frames after which as many episodes have ended as there are actors.

    Earlier means are biased to short episodes: in a task, successful ones. 0: fewer episodes have
    ended, or their number is unknown.
    """
    if column.episodes is None:
        return 0
    enough = np.flatnonzero(np.cumsum(column.episodes) >= actors)
    return int(column.frames[enough[0]]) if len(enough) else 0


def by_metric(table: Table, actors: int = 0) -> dict[str, Lines]:
    """Return a run's table by metric and world, each column from its `first_round` on.

    Args:
        table: name -> seed -> column; `interactions/WORLD` is a line of `interactions`.
        actors: actors of a seed (0: keep columns whole).
    """
    found: dict[str, dict[str, dict[int, Column]]] = {}
    for name, seeds in sorted(table.items()):
        metric, _, world = name.partition("/")
        if metric not in metrics.HIDDEN:
            columns = {seed: _from_first_round(column, actors) for seed, column in seeds.items()}
            found.setdefault(metric, {})[world or ALL_WORLDS] = columns
    for lines in found.values():
        if len(lines) == 2 and ALL_WORLDS in lines:  # there is one world
            del lines[next(world for world in lines if world != ALL_WORLDS)]
    return dict(found)


def _from_first_round(column: Column, actors: int) -> Column:
    there = column.frames >= first_round(column, actors)
    episodes = None if column.episodes is None else column.episodes[there]
    return Column(column.frames[there], column.values[there], episodes)


def over_seeds(lines: Lines, world: str = ALL_WORLDS, until: int | None = None) -> Curve:
    """Average a metric over windows of frames, then over the seeds; the band is their range.

    Args:
        lines: the metric, by world and seed.
        world: one of them, or all: then the mean of the worlds' own means.
        until: the last frames (None: all).
    """
    columns = [column for seeds in lines.values() for column in seeds.values()]
    frames = np.unique(np.concatenate([column.frames for column in columns]))
    frames, window = frames[frames <= (until or frames[-1])], 1
    if len(frames) > CURVE_POINTS:
        last = int(frames[-1])
        window = -(-last // CURVE_POINTS)
        frames = np.minimum(np.arange(window, last + window, window), last)
    seeds = sorted(lines[world])
    values = np.stack([in_world(lines, world, seed, window, frames) for seed in seeds])
    there = ~np.isnan(values).all(axis=0)
    values = values[:, there]
    return Curve(frames[there], *(f(values, axis=0) for f in (np.nanmean, np.nanmin, np.nanmax)))


def in_world(lines: Lines, world: str, seed: int, window: int, frames: np.ndarray) -> np.ndarray:
    """Return one seed's metric, smoothed; for all worlds, the mean of the worlds' means.

    Actors play the worlds in turn, so a mean of all episodes would oscillate with the world whose
    episodes end at the moment. Where no episode of a world ended, its last mean counts.

    Args:
        lines: the metric, by world and seed.
        world: one of them, or `ALL_WORLDS`.
        seed: whose metric it is.
        window: frames.
        frames: int[points].

    Returns:
        [points]; NaN: no data, or not yet from every world that the seed has.
    """
    worlds = [seeds for name, seeds in lines.items() if name != ALL_WORLDS and seed in seeds]
    if world != ALL_WORLDS or not worlds:
        return smoothed(lines[world][seed], window, frames)
    means = np.stack([smoothed(seeds[seed], window, frames) for seeds in worlds])
    index = np.where(np.isnan(means), 0, np.arange(len(frames)))
    return np.take_along_axis(means, np.maximum.accumulate(index, axis=1), axis=1).mean(axis=0)


def at_the_end(lines: Lines, world: str, seed: int, until: int) -> float:
    """Return one seed's metric over the last tenth of frames, as `in_world` (NaN: no data)."""
    window = -(-until // LAST)
    at = np.arange(until - (LAST - 1) * window, until + 1, window)  # a world's last mean goes on
    return float(in_world(lines, world, seed, window, at)[-1])


def smoothed(column: Column, window: int, frames: np.ndarray) -> np.ndarray:
    """Return the mean over the window that ends at each of `frames` (NaN: no data).

    Args:
        column: a metric of one seed, ordered by frames.
        window: frames.
        frames: int[points].
    """
    total = np.concatenate([[0.0], np.cumsum(column.weights * column.values)])
    weight = np.concatenate([[0.0], np.cumsum(column.weights)])
    first = np.searchsorted(column.frames, frames - window, side="right")
    last = np.searchsorted(column.frames, frames, side="right")
    with np.errstate(invalid="ignore"):
        return (total[last] - total[first]) / (weight[last] - weight[first])
