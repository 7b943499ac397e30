"""Scores of many tasks together, robust to few seeds (Agarwal et al., NeurIPS 2021; `rliable`).

Scores are one array for each task: `[runs]`, as many as there are. Intervals are percentiles of a
bootstrap that draws the runs of each task again (stratified). Statistics take samples of runs,
too: `[samples, runs]`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cbet_jax.analysis.intervals import LEVEL, Estimate

SAMPLES = 2000  # of a bootstrap

type Scores = Sequence[np.ndarray]  # of each task: float[... runs]


def interquartile_mean(scores: Scores) -> np.ndarray:
    """Return the mean of the middle half of all runs of all tasks: `[...]`."""
    together = np.sort(np.concatenate(scores, axis=-1))
    runs = together.shape[-1]
    return np.asarray(together[..., runs // 4 : runs - runs // 4].mean(-1))


def improvement(ours: Scores, theirs: Scores) -> np.ndarray:
    """Return the probability that a run of ours is better, averaged over tasks: `[...]`.

    A tie is a half.
    """
    of_tasks = [
        np.sign(our[..., :, None] - their[..., None, :]).mean((-2, -1))
        for our, their in zip(ours, theirs, strict=True)
    ]
    return np.asarray(0.5 + np.mean(of_tasks, axis=0) / 2)


def profile(scores: Scores, thresholds: np.ndarray) -> np.ndarray:
    """Return the share of runs above each threshold, averaged over tasks: `[... thresholds]`."""
    of_tasks = [(task[..., None] > thresholds).mean(-2) for task in scores]
    return np.asarray(np.mean(of_tasks, axis=0))


def bootstrap(statistic: Callable[..., Any], *several: Scores) -> tuple[Any, Any, Any]:
    """Return a statistic of scores, and the bounds of its confidence interval.

    Args:
        statistic: takes as many scores as are given.
        *several: scores of the same tasks.
    """
    runs = [len(task) for scores in several for task in scores]
    bounds = np.tile(np.repeat(runs, runs), (SAMPLES, 1))  # of the index of each run drawn
    indices = np.random.default_rng(0).integers(bounds)
    of_tasks = iter(np.split(indices, np.cumsum(runs), axis=1))
    drawn = statistic(*([task[next(of_tasks)] for task in scores] for scores in several))
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return statistic(*several), low, high


def estimate(statistic: Callable[..., Any], *several: Scores) -> Estimate:
    """Return a statistic of scores with its confidence interval; arguments as of `bootstrap`."""
    return Estimate(*map(float, bootstrap(statistic, *several)))
