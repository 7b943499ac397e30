"""Scores of many tasks together, robust to few seeds (Agarwal et al., NeurIPS 2021; `rliable`).

Scores are one array for each task: `[runs]`, as many as there are. Intervals are percentiles of a
bootstrap that draws the runs of each task again (stratified).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cbet_jax.analysis.intervals import LEVEL, Estimate

SAMPLES = 2000  # of a bootstrap

type Scores = Sequence[np.ndarray]  # of each task: float[runs]


def interquartile_mean(scores: Scores) -> float:
    """Return the mean of the middle half of all runs of all tasks."""
    together = np.sort(np.concatenate(scores))
    cut = len(together) // 4
    return float(together[cut : len(together) - cut].mean())


def improvement(ours: Scores, theirs: Scores) -> float:
    """Return the probability that a run of ours is better, averaged over tasks; a tie is a half."""
    pairs = [np.sign(our[:, None] - their[None]) for our, their in zip(ours, theirs, strict=True)]
    return float(np.mean([0.5 + pair.mean() / 2 for pair in pairs]))


def profile(scores: Scores, thresholds: np.ndarray) -> np.ndarray:
    """Return the share of runs above each threshold, averaged over tasks: `[thresholds]`."""
    return np.asarray(np.mean([(task[:, None] > thresholds).mean(0) for task in scores], axis=0))


def bootstrap(statistic: Callable[..., Any], *several: Scores) -> tuple[Any, Any, Any]:
    """Return a statistic of scores, and the ends of its confidence interval.

    Args:
        statistic: takes as many scores as are given.
        *several: scores of the same tasks.
    """
    runs = [len(task) for scores in several for task in scores]
    ends, drawn = np.cumsum(runs), []
    bounds = np.tile(np.repeat(runs, runs), (SAMPLES, 1))  # of the index of each run drawn
    for sample in np.random.default_rng(0).integers(bounds):
        of_tasks = iter(np.split(sample, ends))
        drawn.append(statistic(*([task[next(of_tasks)] for task in each] for each in several)))
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return statistic(*several), low, high


def estimate(statistic: Callable[..., float], *several: Scores) -> Estimate:
    """Return a statistic of scores with its confidence interval; arguments as of `bootstrap`."""
    return Estimate(*map(float, bootstrap(statistic, *several)))
