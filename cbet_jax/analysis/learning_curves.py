"""Learning curves: metrics over time, smoothed or binned, and averaged over the seeds.

All episodes count alike: of an iteration in which few ended, the mean counts little.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cbet_jax.runs.metrics_table import Column

CURVE_POINTS = 150  # more iterations than that are averaged in bins


class Curve(NamedTuple):
    """One metric over time: its mean over the seeds, and a band around it."""

    frames: np.ndarray  # [points]
    mean: np.ndarray  # [points]
    low: np.ndarray  # [points]: of the lowest seed, or of a confidence interval
    high: np.ndarray  # [points]


def first_round(column: Column, actors: int) -> int:
    """Return the frames after which as many episodes have ended as there are actors.

    Before, mostly short ones have: in a task, those that succeeded. 0, where there are not yet so
    many, or it is not known.
    """
    if column.episodes is None:
        return 0
    enough = np.flatnonzero(np.cumsum(column.episodes) >= actors)
    return int(column.frames[enough[0]]) if len(enough) else 0


def from_first_round(column: Column, actors: int) -> Column:
    """Return the rows of a column from its `first_round` on."""
    if column.episodes is None:
        return column
    there = column.frames >= first_round(column, actors)
    return Column(column.frames[there], column.values[there], column.episodes[there])


def table_from_first_round(
    table: Mapping[str, Mapping[int, Column]], actors: int
) -> dict[str, dict[int, Column]]:
    """Return a run's table (name -> seed -> column), each column from its `first_round` on."""
    return {
        name: {seed: from_first_round(column, actors) for seed, column in seeds.items()}
        for name, seeds in table.items()
    }


def over_seeds(seeds: Mapping[int, Column]) -> Curve:
    """Average a metric in bins of frames, then over the seeds.

    Args:
        seeds: seed -> column.
    """
    last = max(int(column.frames.max()) for column in seeds.values())
    frames, values = _binned(seeds, last)
    filled = ~np.isnan(values).all(axis=0)
    return band(np.nanmean(frames[:, filled], axis=0), values[:, filled])


def over_seeds_and_worlds(worlds: Sequence[Mapping[int, Column]]) -> Curve:
    """Average a metric in bins of frames, then over the worlds, then over the seeds.

    Actors play the worlds in turn, so at one moment more episodes of one world end than of another:
    the mean of all episodes would go up and down with them. A bin in which no episode of a world
    ended has that world's last mean.

    Args:
        worlds: seed -> column of each world; all of the same seeds.
    """
    last = max(int(column.frames.max()) for seeds in worlds for column in seeds.values())
    frames, values = np.stack([_binned(seeds, last) for seeds in worlds], axis=1)
    values = np.stack([_last_known(of_world) for of_world in values])
    there = ~np.isnan(values).any(axis=0)  # every world has been played
    values = np.where(there, values.mean(axis=0), np.nan)
    filled = there.any(axis=0) & ~np.isnan(frames).all(axis=(0, 1))
    return band(np.nanmean(frames[:, :, filled], axis=(0, 1)), values[:, filled])


def _last_known(values: np.ndarray) -> np.ndarray:
    """Return values `[seeds, points]` with each NaN replaced by what is before it."""
    index = np.where(np.isnan(values), 0, np.arange(values.shape[1]))
    return np.take_along_axis(values, np.maximum.accumulate(index, axis=1), axis=1)


def _binned(seeds: Mapping[int, Column], last: int) -> np.ndarray:
    """Return the mean frames and values of each bin, `[2, seeds, points]`; seeds in order."""
    edges = np.linspace(0, last, CURVE_POINTS + 1)[1:]
    frames, values = binned = np.full((2, len(seeds), CURVE_POINTS), np.nan)
    for row, (_, column) in enumerate(sorted(seeds.items())):
        bins = np.searchsorted(edges, column.frames)
        weights = column.weights
        count = np.bincount(bins, weights=weights, minlength=CURVE_POINTS)
        for means, numbers in ((frames, column.frames), (values, column.values)):
            total = np.bincount(bins, weights=weights * numbers, minlength=CURVE_POINTS)
            np.divide(total, count, out=means[row], where=count > 0)
    return binned


def band(frames: np.ndarray, values: np.ndarray) -> Curve:
    """Return the mean over the seeds, and the lowest and highest seed.

    Args:
        frames: [points].
        values: [seeds, points]; NaN where a seed has no data.
    """
    middle, lowest, highest = (f(values, axis=0) for f in (np.nanmean, np.nanmin, np.nanmax))
    return Curve(frames, middle, lowest, highest)


def smoothed(column: Column, window: int, frames: np.ndarray) -> np.ndarray:
    """Return the mean over the window that ends at each of `frames`; NaN: there is no data.

    Args:
        column: a metric of one seed, in the order of its frames.
        window: frames.
        frames: int[points].
    """
    total = np.concatenate([[0.0], np.cumsum(column.weights * column.values)])
    weight = np.concatenate([[0.0], np.cumsum(column.weights)])
    first = np.searchsorted(column.frames, frames - window, side="right")
    last = np.searchsorted(column.frames, frames, side="right")
    with np.errstate(invalid="ignore"):
        return (total[last] - total[first]) / (weight[last] - weight[first])


def of_all_worlds(
    table: Mapping[str, Mapping[int, Column]],
    metric: str,
    seed: int,
    window: int,
    frames: np.ndarray,
) -> np.ndarray:
    """Return a metric, smoothed: the mean of the worlds' own means, where it is known by world.

    Args:
        table: name -> seed -> column; `NAME/WORLD` is the metric of one world.
        metric: its name.
        seed: whose metric it is.
        window: frames.
        frames: int[points].

    Returns:
        [points]; NaN: there is no data, or not yet of every world.
    """
    worlds = [seeds for name, seeds in table.items() if name.startswith(f"{metric}/")]
    columns = [seeds[seed] for seeds in worlds if seed in seeds] or [table[metric][seed]]
    values = np.stack([smoothed(column, window, frames) for column in columns])
    return _last_known(values).mean(axis=0)
