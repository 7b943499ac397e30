"""Networks of RND, Curiosity and RIDE whose weights are chosen, so that results follow by hand.

The embedding has one filter that passes every second pixel's first channel on: a view
that shows the number v all over becomes 16 times v / 255, and two of them are
4 |v - w| / 255 apart.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cbet_jax.config import AuxiliarySettings, TrainSettings
from cbet_jax.intrinsic.interface import Intrinsic, Params
from cbet_jax.types import Trajectory

V = np.array([[0.0, 51.0], [102.0, 51.0], [255.0, 0.0]])  # views [T + 1, N]
X = V / 255
ACTION = np.array([[0, 1], [1, 1]])
MIDDLE = 4 * 3  # of the kernel's 9 pixels with 3 channels each


def settings(squared: bool, **weights: float) -> TrainSettings:
    auxiliary = AuxiliarySettings((1,), hidden_units=2, squared_norms=squared, **weights)
    return TrainSettings(auxiliary=auxiliary)


def passing_on(scale: float = 1.0):
    """Parameters of the embedding, whose numbers are multiplied by `scale`."""
    kernel = np.zeros((27, 1), np.float32)
    kernel[MIDDLE, 0] = scale
    return {"convolution_0": {"kernel": jnp.asarray(kernel), "bias": jnp.asarray([0.0])}}


def _dense(kernel):
    kernel = np.asarray(kernel, np.float32)
    bias = np.zeros(kernel.shape[1], np.float32)
    return {"kernel": jnp.asarray(kernel), "bias": jnp.asarray(bias)}


def models_params():
    """The forward model: phi(s) + 0.5 if the action is 1. The inverse: logits phi(s), phi(s')."""
    select = np.zeros((32, 2))
    select[0, 0] = select[16, 1] = 1
    pass_on = select[:18].copy()
    pass_on[16:, 1] = 0, 1
    forward = {"hidden": _dense(pass_on), "output": _dense([[1.0] * 16, [0.5] * 16])}
    inverse = {"hidden": _dense(select), "output": _dense(np.eye(2))}
    return {"embedding": passing_on(), "forward": forward, "inverse": inverse}


def norm(difference: np.ndarray, squared: bool) -> np.ndarray:
    """Of vectors of 16 equal numbers."""
    return 16 * difference**2 if squared else 4 * np.abs(difference)


def forward_error(squared: bool) -> np.ndarray:
    """||forward(phi(s), a) - phi(s')|| at each step."""
    return norm(X[:-1] + 0.5 * ACTION - X[1:], squared)


def computed(method: Intrinsic, params: Params, played: Trajectory) -> tuple[Any, Any]:
    """Return the rewards and the loss of a method, compiled together."""
    return jax.jit(method.reward_and_loss)(params, played)


def check_models_loss(found, squared: bool) -> None:
    """Check the loss of the inverse and the forward model, and its terms."""
    loss, terms = found
    chosen = np.where(ACTION == 0, X[:-1], X[1:])
    cross_entropy = np.log(np.exp(X[:-1]) + np.exp(X[1:])) - chosen
    forward, inverse = forward_error(squared).sum(0).mean(), cross_entropy.sum(0).mean()
    np.testing.assert_allclose(terms["forward_loss"], forward, rtol=1e-5)
    np.testing.assert_allclose(terms["inverse_loss"], inverse, rtol=1e-5)
    np.testing.assert_allclose(loss, 10 * forward + 0.1 * inverse, rtol=1e-5)
