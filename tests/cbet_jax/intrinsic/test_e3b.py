"""E3B, beside numpy that inverts the covariance anew at each step."""

from functools import partial

import jax
import numpy as np

from cbet_jax.config import AuxiliarySettings, TrainSettings
from cbet_jax.intrinsic.e3b import RIDGE, e3b
from cbet_jax.intrinsic.inverse_forward import InverseModel
from cbet_jax.networks.embedding import apply
from cbet_jax.types import unchanged
from envs.types import Step
from tests.support.moments import embedded, observed, random_moments, trajectory

STEPS, ACTORS, ACTIONS = 12, 2, 3
SETTINGS = TrainSettings(auxiliary=AuxiliarySettings(channels=(2, 2), hidden_units=4))
METHOD = e3b(SETTINGS, ACTIONS)


@jax.jit
def _observe(first: Step, steps: Step):
    params, _, bonus = observed(METHOD, first, steps)
    network = params.learnt["embedding"]
    return params, bonus, embedded(SETTINGS.auxiliary.channels, network, first, steps)


def _rewarded(params, played):
    return METHOD.reward_and_loss(METHOD.adapt(params, played, unchanged), played)[0]


def test_the_bonus_is_the_elliptical_norm_among_the_views_of_the_episode():
    numbers, ended, first, steps = random_moments(STEPS, ACTORS, 255)
    params, signal, phis = _observe(first, steps)
    bonus, phis = np.asarray(signal), np.asarray(phis, np.float64)
    for actor in range(ACTORS):
        seen = []
        for step in range(STEPS):
            seen = [] if ended[step, actor] else seen
            phi = phis[step, actor]  # the view acted in
            covariance = RIDGE * np.eye(len(phi)) + sum((np.outer(x, x) for x in seen), 0.0)
            expected = phi @ np.linalg.inv(covariance) @ phi if seen else 0.0
            np.testing.assert_allclose(bonus[step, actor], expected, rtol=1e-3)
            seen.append(phi)
    assert (bonus >= 0).all()
    assert bonus.max() > 1

    played = trajectory(numbers, np.zeros((STEPS, ACTORS)), signal=signal, num_actions=ACTIONS)
    reward = jax.jit(_rewarded)(params, played)
    rows = bonus.size / 8  # their code's count in a batch of 8
    scale = np.sqrt(((bonus - bonus.sum() / rows) ** 2).sum() / rows)
    np.testing.assert_allclose(reward, bonus / scale, rtol=1e-3)
    assert METHOD.coefficient == 1.0


def test_the_embedding_learns_to_tell_actions_apart():
    numbers, _, first, steps = random_moments(STEPS, ACTORS, 255)
    params, bonus, embedded = _observe(first, steps)
    action = np.random.default_rng(1).integers(ACTIONS, size=(STEPS, ACTORS))
    played = trajectory(numbers, action, signal=bonus, num_actions=ACTIONS)
    _, (loss, terms) = jax.jit(METHOD.reward_and_loss)(params, played)
    np.testing.assert_allclose(loss, 0.1 * terms["inverse_loss"], rtol=1e-6)
    model = InverseModel(hidden_units=4, num_actions=ACTIONS)
    pairs = params.learnt["inverse"], embedded[:-1], embedded[1:]
    logits = np.asarray(jax.jit(partial(apply, model))(*pairs))
    chosen = np.take_along_axis(logits, action[..., None], -1)[..., 0]
    error = np.log(np.exp(logits).sum(-1)) - chosen
    np.testing.assert_allclose(terms["inverse_loss"], error.sum(0).mean(), rtol=1e-4)
