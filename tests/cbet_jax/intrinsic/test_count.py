"""Count by hand: its reward, what it counts, and that it does not reset counts."""

import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import CountSettings
from cbet_jax.intrinsic.count import count_reward
from tests.support.counting import NEVER, drawn_resets, make, observe, resets
from tests.support.moments import moment

ACTORS = 5000


def test_the_reward_of_rare_and_of_frequent_states():
    np.testing.assert_allclose(count_reward(jnp.array([1.0, 4.0, 100.0])), [1, 1 / 2, 1 / 10])


def test_only_states_are_counted():
    here = moment([1, 1])
    assert set(observe(make("count", NEVER), [here], first=here)[0]) == {"states"}


@pytest.mark.parametrize(("changed", "probability"), [({}, 0.0), ({"reset_probability": 0.2}, 0.2)])
def test_counts_are_not_reset_unless_the_settings_say_so(changed, probability):
    method = make("count", CountSettings(capacity=16, **changed))
    expected = drawn_resets(probability, 1, ACTORS)
    np.testing.assert_array_equal(resets(method, ACTORS)["states"], expected[0])
