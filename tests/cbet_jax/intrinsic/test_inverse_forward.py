"""The loss of the inverse and the forward model."""

import numpy as np

from cbet_jax.intrinsic.inverse_forward import make_models, models_loss, predict
from tests.support.handmade_networks import ACTION, V, check_models_loss, models_params, settings
from tests.support.moments import trajectory


def _loss(auxiliary):
    played = trajectory(V, ACTION)
    predictions = predict(make_models(auxiliary, 2), models_params(), played)
    return models_loss(predictions, played.steps.action, auxiliary)


def test_the_loss_by_hand():
    check_models_loss(_loss(settings(False).auxiliary), False)


def test_the_weights_of_the_losses_are_settings():
    auxiliary = settings(False, forward_weight=2.0, inverse_weight=3.0).auxiliary
    loss, terms = _loss(auxiliary)
    np.testing.assert_allclose(loss, 2 * terms["forward_loss"] + 3 * terms["inverse_loss"])
