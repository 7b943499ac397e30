"""Estimates and their confidence intervals: by hand."""

import numpy as np
import pytest

from cbet_jax.analysis import intervals


@pytest.mark.parametrize(  # computed by hand from the formula, z = 1.959964
    ("successes", "episodes", "low", "high"), [(0, 20, 0.0, 0.1611), (30, 100, 0.2189, 0.3958)]
)
def test_shares_have_wilsons_interval(successes, episodes, low, high):
    estimate = intervals.share(np.arange(episodes) < successes)
    assert estimate == pytest.approx((successes / episodes, low, high), abs=5e-5)


def test_means_have_students_interval():
    # mean 4, standard deviation 2, standard error 2 / sqrt(3), t(0.975, 2 degrees) = 4.302653
    estimate = intervals.mean(np.array([2, 4, 6]))
    assert estimate == pytest.approx((4, 4 - 4.968275, 4 + 4.968275), abs=1e-5)
    assert intervals.mean(np.array([3])) == (3, 3, 3)
