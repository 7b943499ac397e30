"""NovelD by hand."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import CountSettings, SettingsError, TrainSettings
from cbet_jax.intrinsic.interface import Params
from cbet_jax.intrinsic.noveld import noveld
from cbet_jax.intrinsic.ride import ride
from tests.support.handmade_networks import ACTION, V, X, norm, passing_on, settings
from tests.support.moments import timed_out, trajectory

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


def test_which_ends_are_paid_does_not_depend_on_other_sequences():
    """As they are divided among devices: here each may end one episode in up to eight steps."""
    ended = np.zeros((8, 2), bool)
    ended[[1, 3, 6], 0] = True
    view, final = np.zeros((9, 2)), np.full((8, 2), 255)
    signal = {"states": jnp.ones((8, 2), jnp.uint32)}
    played = timed_out(trajectory(view, np.zeros((8, 2)), signal=signal), ended, final)
    reward_and_loss = jax.jit(noveld(settings(False), 2).reward_and_loss)  # compiled as a whole
    together, _ = reward_and_loss(PARAMS, played)
    np.testing.assert_array_equal(np.asarray(together > 0)[:, 0], np.arange(8) == 1)
    for actor in range(2):
        of_one = lambda leaf: leaf[:, actor : actor + 1]  # noqa: B023, E731
        alone = jax.tree.map(of_one, played._replace(initial_state=()))
        reward, _ = reward_and_loss(PARAMS, alone)
        np.testing.assert_array_equal(reward[:, 0], together[:, actor])


def test_where_panoramas_are_counted_an_end_is_paid_nothing():
    panoramic = replace(TrainSettings(), counts=CountSettings(states="panoramic"))
    assert noveld(TrainSettings(), 2).final_views
    assert not noveld(panoramic, 2).final_views
    final = replace(panoramic, auxiliary=replace(panoramic.auxiliary, final_views=True))
    with pytest.raises(SettingsError, match="no final view is a panorama"):
        ride(final, 2)
