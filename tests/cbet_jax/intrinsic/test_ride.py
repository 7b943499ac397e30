"""RIDE by hand: its reward, its loss, and counts that are reset at the end of an episode."""

import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import CountSettings, SettingsError
from cbet_jax.intrinsic.interface import Params
from cbet_jax.intrinsic.ride import ride
from tests.support.counting import make, observe_states
from tests.support.handmade_networks import (
    ACTION,
    V,
    X,
    check_models_loss,
    computed,
    models_params,
    norm,
    settings,
)
from tests.support.moments import moment, trajectory

SMALL = CountSettings(capacity=16)


@pytest.mark.parametrize("squared", [False, True])
def test_changes_of_the_embedding_are_rewarded_where_views_are_rare(squared):
    counted = np.array([[1, 4], [9, 2]], np.uint32)
    method, params = ride(settings(squared), 2), Params(models_params(), {})
    played = trajectory(V, ACTION, signal={"states": jnp.asarray(counted)})
    expected = norm(X[1:] - X[:-1], squared) / np.sqrt(counted)
    reward, loss = computed(method, params, played)
    np.testing.assert_allclose(reward, expected, rtol=1e-5)
    check_models_loss(loss, squared)
    assert method.coefficient == 0.1


def test_counts_are_reset_at_the_end_of_an_episode_and_at_success():
    """At an end, the next episode's first view is counted before the reset."""
    moments = [
        moment([1]),
        moment([1]),
        moment([1], ended=[True]),
        moment([1]),
        moment([2]),
        moment([1], success=[True]),
        moment([1]),
    ]
    states = observe_states(make("ride", SMALL), moments, first=moment([0]))
    assert states == [[1], [2], [3], [1], [1], [2], [1]]


def test_counts_are_reset_once_more_when_a_rollout_begins_at_an_end():
    moments = [moment([1]), moment([1], ended=[True]), moment([1]), moment([1])]
    method = make("ride", SMALL)
    assert observe_states(method, moments, first=moment([0]), begin=[2]) == [[1], [2], [1], [2]]
    assert observe_states(method, moments, first=moment([0]), begin=[3]) == [[1], [2], [1], [3]]


def test_counts_are_each_actors_own():
    moments = [moment([1, 1]), moment([1, 1], ended=[True, False]), moment([1, 1])]
    states = observe_states(make("ride", SMALL), moments, first=moment([0, 0]))
    assert states == [[1, 1], [2, 2], [1, 3]]


@pytest.mark.parametrize("changes", [{"shared": True}, {"reset_probability": 0.001}])
def test_counts_that_outlive_an_episode_are_refused(changes):
    with pytest.raises(SettingsError, match="within an episode"):
        make("ride", CountSettings(**changes))
