"""NovelD by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import CountSettings, SettingsError, TrainSettings
from cbet_jax.intrinsic.interface import Params
from cbet_jax.intrinsic.noveld import noveld
from tests.support.handmade_networks import ACTION, V, X, norm, passing_on, settings
from tests.support.moments import trajectory

PARAMS = Params({"predictor": passing_on(1.0)}, {"target": passing_on(3.0)})


def test_new_views_beyond_known_ones_are_rewarded_once_an_episode():
    counted = np.array([[1, 1], [1, 2]], np.uint32)
    method = noveld(settings(False), 2)
    novelty = norm(2 * X, squared=False)
    expected = np.maximum(novelty[1:] - 0.5 * novelty[:-1], 0) * (counted == 1)
    played = trajectory(V, ACTION, signal={"states": jnp.asarray(counted)})
    reward, _ = method.reward_and_loss(PARAMS, played)
    np.testing.assert_allclose(reward, expected, rtol=1e-5)
    assert (expected > 0).sum() == 3
    assert method.coefficient == 0.05


def test_the_predictor_learns_as_rnds_does():
    played = trajectory(V, ACTION, signal={"states": jnp.ones((2, 2), jnp.uint32)})
    _, (loss, terms) = noveld(settings(False), 2).reward_and_loss(PARAMS, played)
    error = norm(2 * X[1:], squared=False).sum(0).mean()
    np.testing.assert_allclose([loss, terms["prediction_loss"]], [0.1 * error, error], rtol=1e-5)


def test_counts_that_outlive_an_episode_are_refused():
    with pytest.raises(SettingsError, match="noveld counts within an episode"):
        noveld(TrainSettings(counts=CountSettings(shared=True)), 2)
