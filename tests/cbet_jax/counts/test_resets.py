"""Which tables the rules reset, and when."""

import jax
import numpy as np
import pytest

from cbet_jax.config import CountSettings, SettingsError
from cbet_jax.counts.resets import chosen_resets, random_resets, within_episodes
from tests.support.moments import moment

KEY = jax.random.key(0)
STEP = moment([0])


def test_random_resets_come_as_often_as_asked_for_and_independently():
    probability, tables = 0.2, 4000
    mask = np.asarray(random_resets(CountSettings(), probability).mask(KEY, STEP, (2, tables)))
    deviation = np.sqrt(tables * probability * (1 - probability))
    np.testing.assert_allclose(mask.sum(1), tables * probability, atol=5 * deviation)
    both = tables * probability**2
    np.testing.assert_allclose(mask.all(0).sum(), both, atol=5 * np.sqrt(both))


@pytest.mark.parametrize(
    ("settings", "own", "expected"),
    [
        ({}, 0.5, 0.5),
        ({}, 0.0, 0.0),
        ({"random_resets": False}, 0.5, 0.0),
        ({"reset_probability": 0.25}, 0.5, 0.25),
        ({"reset_probability": 0.0}, 0.5, 0.0),
        ({"random_resets": False, "reset_probability": 0.25}, 0.5, 0.25),
    ],
)
def test_the_settings_come_before_the_methods_own_probability(settings, own, expected):
    resets = random_resets(CountSettings(**settings), own)
    drawn = jax.random.bernoulli(KEY, expected, (2, 64))
    np.testing.assert_array_equal(resets.mask(KEY, STEP, (2, 64)), drawn)
    assert resets.never == (expected == 0)


@pytest.mark.parametrize("at_success", [True, False])
def test_episodic_resets_come_where_an_episode_ends_and_maybe_where_it_succeeds(at_success):
    ended, success = [False, True, False, False], [False, False, True, False]
    step = moment([0] * 4, ended=ended, success=success)
    step = step._replace(terminated=np.array([False, False, False, True]))
    resets = within_episodes("ride", CountSettings(), at_success=at_success)
    mask = resets.mask(KEY, step, (2, 4))
    np.testing.assert_array_equal(mask, [[False, True, at_success, True]] * 2)
    assert not resets.never
    if not at_success:  # the rule of settings, too
        chosen = chosen_resets(CountSettings(episodic=True), 0.5)
        np.testing.assert_array_equal(chosen.mask(KEY, step, (2, 4)), mask)


@pytest.mark.parametrize("lasting", [{"shared": True}, {"reset_probability": 0.0}])
def test_episodic_counts_do_not_outlive_an_episode(lasting):
    with pytest.raises(SettingsError, match="leave counts"):
        chosen_resets(CountSettings(episodic=True, **lasting), 0.5)
