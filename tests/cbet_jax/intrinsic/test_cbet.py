"""C-BET by hand: its reward, what it counts, and how often it resets counts."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import CountSettings
from cbet_jax.intrinsic.cbet import cbet_reward
from tests.support.counting import ALWAYS, NEVER, drawn_resets, make, observe, resets
from tests.support.moments import moment

ACTORS = 5000


def test_the_reward_of_rare_and_of_frequent_transitions():
    states, changes = jnp.array([1.0, 3.0, 1.0, 1e5]), jnp.array([1.0, 1.0, 3.0, 1e5])
    expected = [1 / 2, 1 / 4, 1 / 4, 1 / 2e5]
    np.testing.assert_allclose(cbet_reward(states, changes), expected, rtol=1e-6)


def test_states_and_changes_are_counted_for_each_actor():
    moments = [moment([1, 1], [5, 8]), moment([1, 2], [5, 8]), moment([1, 1], [10, 8])]
    counted = observe(make("cbet", NEVER), moments, first=moment([0, 0], [0, 8]))
    assert [c["states"] for c in counted] == [[1, 1], [2, 1], [3, 2]]
    # The first actor's changes: +5, 0, +5. The second one's: 0, 0, 0.
    assert [c["changes"] for c in counted] == [[1, 1], [1, 2], [2, 3]]


def test_certain_resets_make_every_visit_the_first():
    moments = [moment([1, 1], [5, 8])] * 3
    counted = observe(make("cbet", ALWAYS), moments, first=moment([0, 0]))
    assert counted == [{"states": [1, 1], "changes": [1, 1]}] * 3


@pytest.mark.parametrize(
    ("changed", "probability"),
    [({}, 0.001), ({"random_resets": False}, 0.0), ({"reset_probability": 0.2}, 0.2)],
)
def test_each_table_is_reset_with_the_probability_of_the_paper_or_of_the_settings(
    changed, probability
):
    method = make("cbet", replace(CountSettings(capacity=16), **changed))
    found = resets(method, ACTORS)
    expected = drawn_resets(probability, 2, ACTORS)
    np.testing.assert_array_equal([found["states"], found["changes"]], expected)
    assert expected.any(axis=1).all() == (probability > 0)
