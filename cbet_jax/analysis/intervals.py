"""Means, shares and differences with their 95 % confidence intervals.

The formulas stand here on `scipy.special`; tests compare them with `scipy.stats`, whose functions
take 20 to 400 times as long (a report needs thousands of intervals) and half a second to import.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

LEVEL = 0.95  # confidence


class Estimate(NamedTuple):
    """A mean and the bounds of its confidence interval."""

    value: float
    low: float
    high: float

    def text(self, digits: int) -> str:
        """Return the mean, then the interval in brackets, unless it has no width."""
        if not self.low < self.high:
            return f"{self.value:.{digits}f}"
        low, high = f"{self.low:.{digits}f}", f"{self.high:.{digits}f}"
        return f"{self.value:.{digits}f} [{low}, {high}]"


def share(outcomes: np.ndarray) -> Estimate:
    """Estimate a probability from independent outcomes (Wilson's score interval).

    Args:
        outcomes: bool[n], n >= 1.
    """
    n, p = len(outcomes), float(np.mean(outcomes))
    z = float(_special().ndtri((1 + LEVEL) / 2))
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return Estimate(p, float(min(p, middle - half)), float(max(p, middle + half)))


def mean(values: np.ndarray) -> Estimate:
    """Estimate a mean from independent values (Student's t; a single value has no width).

    Args:
        values: numbers[n], n >= 1.
    """
    n, center = len(values), float(np.mean(values))
    if n == 1:
        return Estimate(center, center, center)
    error = float(np.std(values, ddof=1)) / np.sqrt(n)
    half = float(_special().stdtrit(n - 1, (1 + LEVEL) / 2)) * error
    return Estimate(center, center - half, center + half)


def difference(ours: np.ndarray, theirs: np.ndarray) -> Estimate:
    """Estimate the difference of two means (Welch's t; NaN for a single value).

    Args:
        ours: numbers[n].
        theirs: numbers[m], whose mean is subtracted.
    """
    center = float(np.mean(ours) - np.mean(theirs))
    if min(len(ours), len(theirs)) < 2:
        return Estimate(center, np.nan, np.nan)
    errors = np.array([np.var(values, ddof=1) / len(values) for values in (ours, theirs)])
    if not errors.any():
        return Estimate(center, center, center)
    freedom = errors.sum() ** 2 / (errors**2 / [len(ours) - 1, len(theirs) - 1]).sum()
    half = float(_special().stdtrit(freedom, (1 + LEVEL) / 2) * np.sqrt(errors.sum()))
    return Estimate(center, center - half, center + half)


def normalized_entropy(shares: np.ndarray) -> float:
    """Return the entropy of a distribution, divided by the uniform one's: 0 to 1.

    Args:
        shares: float[n], n >= 2, with sum 1.
    """
    return float(_special().entr(shares).sum() / np.log(len(shares)))


@cache
def _special() -> Any:
    """Return `scipy.special`, imported when it is first used: it takes a third of a second."""
    from scipy import special

    return special
