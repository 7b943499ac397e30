"""Learning curves: metrics over time, smoothed or binned, and averaged over the seeds."""

from collections.abc import Mapping
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


def over_seeds(seeds: Mapping[int, Column]) -> Curve:
    """Average a metric in bins of frames, then over the seeds.

    Args:
        seeds: seed -> column.
    """
    last = max(column.frames.max() for column in seeds.values())
    edges = np.linspace(0, last, CURVE_POINTS + 1)[1:]
    frames, values = np.full((2, len(seeds), CURVE_POINTS), np.nan)
    for row, column in enumerate(seeds.values()):
        bins = np.searchsorted(edges, column.frames)
        count = np.bincount(bins, minlength=CURVE_POINTS)
        for means, numbers in ((frames, column.frames), (values, column.values)):
            total = np.bincount(bins, weights=numbers, minlength=CURVE_POINTS)
            np.divide(total, count, out=means[row], where=count > 0)
    filled = ~np.isnan(values).all(axis=0)
    return band(np.nanmean(frames[:, filled], axis=0), values[:, filled])


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
    total = np.concatenate([[0.0], np.cumsum(column.values)])
    first = np.searchsorted(column.frames, frames - window, side="right")
    last = np.searchsorted(column.frames, frames, side="right")
    with np.errstate(invalid="ignore"):
        return (total[last] - total[first]) / (last - first)
