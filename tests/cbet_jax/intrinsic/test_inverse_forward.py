"""The loss of the inverse and the forward model."""

import numpy as np
import pytest

from cbet_jax.intrinsic.interface import Params
from cbet_jax.intrinsic.inverse_forward import (
    make_inverse_embedding,
    make_models,
    models_loss,
    predict,
)
from tests.support.handmade_networks import ACTION, V, X, check_models_loss, models_params, settings
from tests.support.moments import trajectory


def _played(ended=False):
    played = trajectory(V, ACTION)
    ends = np.broadcast_to(ended, ACTION.shape)
    return played._replace(steps=played.steps._replace(truncated=ends))


def _loss(auxiliary, ended=False):
    played = _played(ended)
    predictions = predict(make_models(auxiliary, 2), models_params(), played)
    return models_loss(predictions, played.steps.action, auxiliary)


@pytest.mark.parametrize("ended", [False, True])
def test_the_loss_by_hand(ended):
    """Curiosity and RIDE also learn from steps that end an episode, as in the published code."""
    check_models_loss(_loss(settings(False).auxiliary, ended), False)


@pytest.mark.parametrize("ended", [np.eye(2, dtype=bool), True])
def test_an_embedding_does_not_learn_from_steps_that_end_an_episode(ended):
    auxiliary = settings(False).auxiliary
    embedding, params = make_inverse_embedding(auxiliary, 2), Params(models_params(), {})
    _, terms = embedding.loss(params, _played(ended))
    chosen = np.where(ACTION == 0, X[:-1], X[1:])
    error = np.log(np.exp(X[:-1]) + np.exp(X[1:])) - chosen
    expected = np.where(ended, 0.0, error).sum(0).mean()
    np.testing.assert_allclose(terms["inverse_loss"], expected, rtol=1e-5)


def test_the_weights_of_the_losses_are_settings():
    auxiliary = settings(False, forward_weight=2.0, inverse_weight=3.0).auxiliary
    loss, terms = _loss(auxiliary)
    np.testing.assert_allclose(loss, 2 * terms["forward_loss"] + 3 * terms["inverse_loss"])
