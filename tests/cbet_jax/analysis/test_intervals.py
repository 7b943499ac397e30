"""Estimates and their confidence intervals: by hand, and against scipy.stats."""

import numpy as np
import pytest
from scipy import stats

from cbet_jax.analysis import intervals


@pytest.mark.parametrize(  # computed by hand from the formula, z = 1.959964
    ("successes", "episodes", "low", "high"), [(0, 20, 0.0, 0.1611), (30, 100, 0.2189, 0.3958)]
)
def test_shares_have_wilsons_interval(successes, episodes, low, high):
    estimate = intervals.share(np.arange(episodes) < successes)
    assert estimate == pytest.approx((successes / episodes, low, high), abs=5e-5)
    expected = stats.binomtest(successes, episodes).proportion_ci(method="wilson")
    assert estimate[1:] == pytest.approx((expected.low, expected.high))


def test_means_have_students_interval():
    # mean 4, standard deviation 2, standard error 2 / sqrt(3), t(0.975, 2 degrees) = 4.302653
    values = np.array([2, 4, 6])
    estimate = intervals.mean(values)
    assert estimate == pytest.approx((4, 4 - 4.968275, 4 + 4.968275), abs=1e-5)
    expected = stats.ttest_1samp(values, 0).confidence_interval()
    assert estimate[1:] == pytest.approx((expected.low, expected.high))
    assert intervals.mean(np.array([3])) == (3, 3, 3)


def test_differences_have_welchs_interval():
    ours, theirs = np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.1, 0.4, 0.2])
    estimate = intervals.difference(ours, theirs)
    expected = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval()
    assert estimate.value == pytest.approx(ours.mean() - theirs.mean())
    assert estimate[1:] == pytest.approx((expected.low, expected.high))
    assert np.isnan(intervals.difference(ours[:1], theirs).low)
    assert intervals.difference(np.full(3, 2.0), np.full(2, 1.0)) == (1, 1, 1)
