"""Results of runs and methods, seed by seed, and their differences from the first one.

`report`, `compare` and the tables of a study consist of these rows. A single seed has no interval,
and the text says so: two single seeds differ by chance, too.
"""

from typing import NamedTuple

import numpy as np

from cbet_jax.analysis import intervals
from cbet_jax.analysis.intervals import Estimate
from envs.names import ACTIONS

SHARES = tuple(f"share_of_{action}" for action in ACTIONS)
ENTROPY = "action_entropy"
BOUNDED = ("success", "success_rate", "extrinsic_return", ENTROPY, *SHARES)
ONE_SEED = "one seed"


class Row(NamedTuple):
    """The values of one metric in one world, for a run or for a method of a study."""

    name: str
    metric: str
    world: str
    values: dict[int, float]  # seed -> value

    @property
    def mean(self) -> Estimate:
        """The mean over seeds, with Student's interval."""
        return within(self.metric, self._array)

    def text(self, digits: int, scale: float = 1.0) -> str:
        """Return the mean and its interval as text.

        Args:
            digits: digits after the point.
            scale: factor of the values, 100 for percent.
        """
        return _text(self.mean, digits, scale, several=len(self.values) > 1)

    def difference_text(self, other: "Row", digits: int, scale: float = 1.0) -> str:
        """Return the difference of the means and its interval as text."""
        found = intervals.difference(self._array, other._array)
        return _text(found, digits, scale, several=not np.isnan(found.low), sign="+")

    @property
    def _array(self) -> np.ndarray:
        return np.array(list(self.values.values()))


def within(metric: str, values: np.ndarray) -> Estimate:
    """Return a mean and its interval, which is cut to 0..1 for metrics with that range."""
    found = intervals.mean(values)
    if metric in BOUNDED and values.min() >= 0 and values.max() <= 1:
        return Estimate(found.value, max(found.low, 0.0), min(found.high, 1.0))
    return found


def _text(found: Estimate, digits: int, scale: float, *, several: bool, sign: str = "") -> str:
    value, low, high = (scale * number for number in found)
    shown = f"{value:{sign}.{digits}f}"
    return f"{shown} [{low:.{digits}f}, {high:.{digits}f}]" if several else f"{shown} {ONE_SEED}"
