"""RND by hand."""

import numpy as np
import pytest

from cbet_jax.intrinsic.interface import Params
from cbet_jax.intrinsic.rnd import rnd
from tests.support.handmade_networks import ACTION, V, X, norm, passing_on, settings
from tests.support.moments import trajectory

PARAMS = Params({"predictor": passing_on(1.0)}, {"target": passing_on(3.0)})


@pytest.mark.parametrize("squared", [False, True])
def test_the_error_of_the_predictor_is_reward_and_loss(squared):
    method, played = rnd(settings(squared), 2), trajectory(V, ACTION)
    expected = norm(2 * X[1:], squared)
    reward, (loss, terms) = method.reward_and_loss(PARAMS, played)
    np.testing.assert_allclose(reward, expected, rtol=1e-5)
    np.testing.assert_allclose(terms["prediction_loss"], expected.sum(0).mean(), rtol=1e-5)
    np.testing.assert_allclose(loss, 0.1 * expected.sum(0).mean(), rtol=1e-5)
    assert method.coefficient == 0.1


def test_the_weight_of_the_loss_is_a_setting():
    method = rnd(settings(False, prediction_weight=4.0), 2)
    _, (loss, terms) = method.reward_and_loss(PARAMS, trajectory(V, ACTION))
    np.testing.assert_allclose(loss, 4 * terms["prediction_loss"])
