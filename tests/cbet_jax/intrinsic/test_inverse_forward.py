"""RND, Curiosity and RIDE by hand: rewards and losses of networks whose weights are chosen.

The embedding has one filter that passes every second pixel's first channel on: a view
that shows the number v all over becomes 16 times v / 255, and two of them are
4 |v - w| / 255 apart.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import AuxiliarySettings, TrainSettings
from cbet_jax.intrinsic.curiosity import curiosity
from cbet_jax.intrinsic.ride import ride
from cbet_jax.intrinsic.rnd import rnd
from cbet_jax.intrinsic.types import Params
from cbet_jax.networks.embedding import Embedding, apply, distance, init_params
from tests.support.moments import trajectory

V = np.array([[0.0, 51.0], [102.0, 51.0], [255.0, 0.0]])  # views [T + 1, N]
X = V / 255
ACTION = np.array([[0, 1], [1, 1]])
SQUARED = [False, True]
MIDDLE = 4 * 3  # of the kernel's 9 pixels with 3 channels each


def _settings(squared, **weights):
    auxiliary = AuxiliarySettings((1,), hidden_units=2, squared_norms=squared, **weights)
    return TrainSettings(auxiliary=auxiliary)


def _passing_on(scale=1.0):
    kernel = jnp.zeros((27, 1)).at[MIDDLE, 0].set(scale)
    return {"convolution_0": {"kernel": kernel, "bias": jnp.zeros(1)}}


def _dense(kernel):
    kernel = jnp.asarray(kernel, jnp.float32)
    return {"kernel": kernel, "bias": jnp.zeros(kernel.shape[1])}


def _dynamics_params():
    """The forward model: phi(s) + 0.5 if the action is 1. The inverse: logits phi(s), phi(s')."""
    select = np.zeros((32, 2))
    select[0, 0] = select[16, 1] = 1
    forward = {"hidden": _dense(select[:18]), "output": _dense([[1.0] * 16, [0.0] * 16])}
    forward["hidden"]["kernel"] = forward["hidden"]["kernel"].at[16:, 1].set([0, 1])
    forward["output"]["kernel"] = forward["output"]["kernel"].at[1].set(0.5)
    inverse = {"hidden": _dense(select), "output": _dense(np.eye(2))}
    return {"embedding": _passing_on(), "forward": forward, "inverse": inverse}


def _norm(difference, squared):
    """Of vectors of 16 equal numbers."""
    return 16 * difference**2 if squared else 4 * np.abs(difference)


def _surprise(squared):
    return _norm(X[:-1] + 0.5 * ACTION - X[1:], squared)


def _cross_entropy():
    chosen = np.where(ACTION == 0, X[:-1], X[1:])
    return np.log(np.exp(X[:-1]) + np.exp(X[1:])) - chosen


@pytest.mark.parametrize("squared", SQUARED)
def test_rnd(squared):
    method = rnd(_settings(squared), 2)
    params = Params({"predictor": _passing_on(1.0)}, {"target": _passing_on(3.0)})
    played = trajectory(V, ACTION)
    expected = _norm(2 * X[1:], squared)
    np.testing.assert_allclose(method.reward(params, played), expected, rtol=1e-5)
    loss, terms = method.loss(params, played)
    np.testing.assert_allclose(terms["prediction_loss"], expected.sum(0).mean(), rtol=1e-5)
    np.testing.assert_allclose(loss, 0.1 * expected.sum(0).mean(), rtol=1e-5)
    assert method.coefficient == 0.1


@pytest.mark.parametrize("squared", SQUARED)
def test_curiosity(squared):
    method, params = curiosity(_settings(squared), 2), Params(_dynamics_params(), {})
    played = trajectory(V, ACTION)
    np.testing.assert_allclose(method.reward(params, played), _surprise(squared), rtol=1e-5)
    _check_dynamics_loss(method.loss(params, played), squared)
    assert method.coefficient == 0.1


@pytest.mark.parametrize("squared", SQUARED)
def test_ride(squared):
    counted = np.array([[1, 4], [9, 2]], np.uint32)
    method = ride(_settings(squared), 2)
    params = Params(_dynamics_params(), {})
    played = trajectory(V, ACTION, signal={"states": jnp.asarray(counted)})
    expected = _norm(X[1:] - X[:-1], squared) / np.sqrt(counted)
    np.testing.assert_allclose(method.reward(params, played), expected, rtol=1e-5)
    _check_dynamics_loss(method.loss(params, played), squared)
    assert method.coefficient == 0.1


def _check_dynamics_loss(found, squared):
    loss, terms = found
    forward, inverse = _surprise(squared).sum(0).mean(), _cross_entropy().sum(0).mean()
    np.testing.assert_allclose(terms["forward_loss"], forward, rtol=1e-5)
    np.testing.assert_allclose(terms["inverse_loss"], inverse, rtol=1e-5)
    np.testing.assert_allclose(loss, 10 * forward + 0.1 * inverse, rtol=1e-5)


def test_the_weights_of_the_losses_are_settings():
    played = trajectory(V, ACTION)
    settings = _settings(False, forward_weight=2.0, inverse_weight=3.0, prediction_weight=4.0)
    loss, terms = curiosity(settings, 2).loss(Params(_dynamics_params(), {}), played)
    np.testing.assert_allclose(loss, 2 * terms["forward_loss"] + 3 * terms["inverse_loss"])
    params = Params({"predictor": _passing_on(1.0)}, {"target": _passing_on(3.0)})
    loss, terms = rnd(settings, 2).loss(params, played)
    np.testing.assert_allclose(loss, 4 * terms["prediction_loss"])


@pytest.mark.parametrize("squared", SQUARED)
def test_where_nothing_differs_the_gradient_is_zero(squared):
    x = jnp.ones((1, 1, 3))
    gradient = jax.grad(lambda x: distance(x, jnp.ones((1, 1, 3)), squared=squared).sum())(x)
    np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize(("size", "channels"), [(7, (32, 32, 128)), (64, (32,) * 5)])
def test_embeddings_have_128_numbers(size, channels):
    """Of MiniGrid's views and of Habitat's."""
    network, view = Embedding(channels), jnp.zeros((2, 3, size, size, 3), jnp.uint8)
    embed = lambda key: apply(network, init_params(network, key, view), view)  # noqa: E731
    assert jax.eval_shape(embed, jax.random.key(0)).shape == (2, 3, 128)
    assert AuxiliarySettings().channels == (32, 32, 128)
