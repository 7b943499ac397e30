"""RND as its own paper has it, beside plain numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import AuxiliarySettings, LossSettings, TrainSettings
from cbet_jax.intrinsic.rnd_normalized import normalized, rnd_normalized
from cbet_jax.intrinsic.running_moments import Moments
from cbet_jax.types import unchanged
from tests.support.moments import moment, observed, timed_out, trajectory, views

STEPS, ACTORS, DISCOUNT = 6, 2, 0.5
SETTINGS = TrainSettings(
    auxiliary=AuxiliarySettings(channels=(2,)), loss=LossSettings(intrinsic_discount=DISCOUNT)
)
METHOD = rnd_normalized(SETTINGS, 3)
NUMBERS = np.random.default_rng(0).integers(255, size=(STEPS + 1, ACTORS))


@jax.jit
def _observe(first, steps):
    return observed(METHOD, first, steps)


@jax.jit
def _rewarded(params, played):
    adapted = METHOD.adapt(params, played, unchanged)
    return adapted, METHOD.reward_and_loss(adapted, played)[0]


@pytest.mark.parametrize("known", [False, True])
def test_rewards_are_errors_over_the_deviation_of_their_discounted_sums(known):
    """The end of an episode ends no sum; its final view is paid, or nothing if it is unknown."""
    reached = NUMBERS[1:].copy()
    reached[2] += 1
    first = moment(NUMBERS[0])
    moments = zip(NUMBERS[1:], reached if known else [None] * STEPS, strict=True)
    moments = [moment(numbers, final=final) for numbers, final in moments]
    steps = jax.tree.map(lambda *leaves: jnp.stack(leaves), *moments)
    over = np.arange(STEPS) == 2
    steps = steps._replace(truncated=steps.truncated.at[2].set(True))
    params, after, signal = _observe(first, steps)
    errors = np.asarray(signal.error)
    np.testing.assert_array_equal(errors > 0, (known | ~over)[:, None].repeat(ACTORS, 1))
    alone = rnd_normalized(SETTINGS, 3).reward(
        params,
        trajectory(
            [reached[2], reached[2]], [[0] * ACTORS], signal=jax.tree.map(lambda x: x[2:3], signal)
        ),
    )[1][1]["prediction_loss"]
    assert not known or abs(errors[2].mean() - alone) < 1e-4 * alone
    total, sums = np.zeros(ACTORS), []
    for error in errors:
        total = DISCOUNT * total + error
        sums.append(total)
    np.testing.assert_allclose(signal.discounted, sums, rtol=1e-5)
    np.testing.assert_allclose(after, sums[-1], rtol=1e-5)

    played = trajectory(NUMBERS, np.zeros((STEPS, ACTORS)), signal=signal)
    played = timed_out(played, steps.truncated, reached if known else None)
    adapted, reward = _rewarded(params, played)
    np.testing.assert_allclose(reward, errors / np.std(sums), rtol=1e-3)
    seen = views(reached if known else NUMBERS[1:]).reshape(-1, 7, 7, 3)
    np.testing.assert_allclose(adapted.fixed["views"].mean, np.mean(seen, 0), rtol=1e-3)
    assert METHOD.coefficient == 1.0


def test_views_are_normalised_number_by_number_and_clipped():
    view = views([[0, 100, 200]])
    moments = Moments(jnp.full((7, 7, 3), 100.0), jnp.full((7, 7, 3), 16.0), jnp.asarray(10.0))
    found = normalized(view, moments)[0, :, 3, 3, 0]
    np.testing.assert_allclose(found, [-5, 0, 5])
    still = Moments(moments.mean, jnp.zeros((7, 7, 3)), moments.weight)
    assert (np.asarray(normalized(view[:, 1:2], still)) == 0).all()


def test_the_loss_is_the_error_after_the_views_so_far_are_included():
    first, *moments = (moment(numbers) for numbers in NUMBERS)
    params, _, signal = _observe(first, jax.tree.map(lambda *x: jnp.stack(x), *moments))
    played = trajectory(NUMBERS, np.zeros((STEPS, ACTORS)), signal=signal)
    _, (loss, terms) = jax.jit(METHOD.reward_and_loss)(params, played)
    # Before `adapt`, it is the sum of the errors that were observed.
    np.testing.assert_allclose(
        terms["prediction_loss"], np.asarray(signal.error).sum(0).mean(), rtol=1e-4
    )
    np.testing.assert_allclose(loss, 0.1 * terms["prediction_loss"], rtol=1e-6)
