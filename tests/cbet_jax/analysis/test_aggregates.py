"""Scores of many tasks together, by hand."""

import numpy as np
import pytest

from cbet_jax.analysis.aggregates import (
    bootstrap,
    estimate,
    improvement,
    interquartile_mean,
    profile,
)

ONE, TWO = np.array([0.0, 0.2, 0.4, 1.0]), np.array([0.5, 0.5, 0.7, 0.9])


def test_the_middle_half_of_all_runs_counts():
    """Of eight runs the two lowest (0, 0.2) and the two highest (0.9, 1) are left out."""
    assert interquartile_mean([ONE, TWO]) == pytest.approx((0.4 + 0.5 + 0.5 + 0.7) / 4)
    assert interquartile_mean([np.array([3.0])]) == 3


def test_each_task_counts_alike_in_profiles_and_improvements():
    np.testing.assert_allclose(profile([ONE, TWO[:2]], np.array([0.1, 0.5])), [0.875, 0.125])
    assert improvement([ONE], [ONE]) == 0.5
    assert improvement([TWO, ONE], [ONE, ONE]) == pytest.approx((12 / 16 + 0.5) / 2)
    assert improvement([ONE + 2], [ONE]) == 1


def test_an_interval_has_the_width_of_what_the_runs_of_a_task_could_have_been():
    flat = [np.full(3, 0.2), np.full(3, 0.8)]  # tasks differ, runs do not
    assert estimate(interquartile_mean, flat) == (0.5, 0.5, 0.5)
    random = np.random.default_rng(0)
    found = estimate(lambda scores: scores[0].mean(-1), [random.normal(size=400)])
    assert found.high - found.low == pytest.approx(2 * 1.96 / 20, rel=0.15)
    middle, low, high = bootstrap(lambda s: profile(s, np.array([0.1, 0.5])), [ONE, TWO])
    assert (low <= middle).all()
    assert (middle <= high).all()
    assert (low < high).any()
