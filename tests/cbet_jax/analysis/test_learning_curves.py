"""Learning curves: by hand."""

import numpy as np

from cbet_jax.analysis.learning_curves import (
    ALL_WORLDS,
    CURVE_POINTS,
    by_metric,
    first_round,
    in_world,
    over_seeds,
    smoothed,
)
from cbet_jax.runs.metrics_table import Column

NAN = np.nan


def negative(column):
    return column._replace(values=-column.values)


def test_a_curve_is_the_mean_and_the_range_of_the_seeds():
    one = Column(np.array([10, 20, 30, 40]), np.array([1.0, 3.0, 5.0, 7.0]))
    other = Column(np.array([10, 20]), np.array([2.0, 5.0]))
    line = over_seeds({ALL_WORLDS: {0: one, 1: other}})
    assert np.array_equal(line.frames, [10, 20, 30, 40])
    assert np.array_equal(line.mean, [1.5, 4, 5, 7])
    assert np.array_equal(line.low, [1, 3, 5, 7])
    assert np.array_equal(line.high, [2, 5, 5, 7])


def test_a_long_curve_is_averaged_in_bins():
    count = 4 * CURVE_POINTS
    column = Column(np.arange(1, count + 1), np.tile([0.0, 1.0, 2.0, 5.0], CURVE_POINTS))
    line = over_seeds({ALL_WORLDS: {0: column}})
    assert np.array_equal(line.frames, np.arange(4, count + 1, 4))
    assert np.allclose(line.mean, 2.0)
    half = over_seeds({ALL_WORLDS: {0: column}}, until=count // 2)
    assert half.frames[-1] == count // 2
    longer = Column(np.arange(1, count + 2), np.ones(count + 1))
    assert over_seeds({ALL_WORLDS: {0: longer}}).frames[-1] == count + 1  # not later


def test_curves_are_smoothed_over_the_window_that_ends_there():
    column = Column(np.array([10, 20, 30, 40]), np.array([1.0, 3.0, 5.0, 7.0]))
    found = smoothed(column, 20, np.array([5, 10, 25, 40, 70]))
    np.testing.assert_array_equal(found, [np.nan, 1, 2, 6, np.nan])


def test_a_curve_begins_when_as_many_episodes_have_ended_as_there_are_actors():
    column = Column(np.arange(1, 5) * 10, np.array([1.0, 1.0, 0.1, 0.2]), np.array([1.0, 1, 9, 3]))
    assert [first_round(column, actors) for actors in (2, 3, 11, 12)] == [20, 30, 30, 40]
    assert first_round(column, 99) == 0  # too few have ended to wait for
    assert first_round(column._replace(episodes=None), 2) == 0
    found = by_metric({"success": {0: column}, "success/A": {0: column}}, 3)
    assert found.keys() == {"success"}
    assert found["success"].keys() == {ALL_WORLDS}  # there is one world
    assert found["success"][ALL_WORLDS][0].values.tolist() == [0.1, 0.2]
    assert found["success"][ALL_WORLDS][0].episodes.tolist() == [9, 3]


def test_all_episodes_count_alike():
    """Also where many ended at one moment: those that failed, at their time limit."""
    episodes = np.array([1.0, 2, 7, 1, 9])
    column = Column(np.array([10, 20, 30, 40, 50]), np.array([1.0, 1, 0, 1, 0.5]), episodes)
    found = smoothed(column, 30, np.array([10, 30, 50]))
    np.testing.assert_allclose(found, [1, 0.3, 5.5 / 17])
    doubled = Column(
        np.repeat(np.arange(10, 10 + CURVE_POINTS), 2),
        np.tile([1.0, 0.0], CURVE_POINTS),
        np.tile([1.0, 3.0], CURVE_POINTS),
    )
    np.testing.assert_allclose(over_seeds({ALL_WORLDS: {0: doubled}}).mean[20:], 0.25)


def test_all_worlds_together_are_the_mean_of_their_own_means():
    """Whichever world's episodes happen to end at a moment."""
    often = Column(np.array([10, 20, 30, 40]), np.array([1.0, 1.0, 3.0, 3.0]))
    rarely = Column(np.array([20, 40]), np.array([10.0, 20.0]))
    both = {0: often, 1: negative(often)}
    lines = {"A": both, "B": {1: negative(rarely), 0: rarely}, ALL_WORLDS: both}
    found = over_seeds(lines)
    assert np.array_equal(found.frames, [20, 30, 40])
    assert np.array_equal(found.high, [5.5, 6.5, 11.5])
    assert np.array_equal(found.low, [-5.5, -6.5, -11.5])
    frames = np.array([10, 20, 30, 40])
    np.testing.assert_array_equal(
        in_world(lines, ALL_WORLDS, 0, 10, frames), [np.nan, 5.5, 6.5, 11.5]
    )
    np.testing.assert_array_equal(in_world(lines, "B", 0, 20, np.array([20, 40])), [10, 20])
