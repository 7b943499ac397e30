"""RE3, beside numpy that sorts all distances of the episode."""

import jax
import numpy as np

from cbet_jax.config import AuxiliarySettings, TrainSettings
from cbet_jax.intrinsic.re3 import NEIGHBOURS, re3
from cbet_jax.types import unchanged
from tests.support.moments import embedded, observed, random_moments, trajectory

STEPS, ACTORS, ACTIONS = 30, 2, 3
SETTINGS = TrainSettings(auxiliary=AuxiliarySettings(channels=(2, 2)))
METHOD = re3(SETTINGS, ACTIONS)


@jax.jit
def _observe(first, steps):
    params, _, signal = observed(METHOD, first, steps)
    network = params.fixed["encoder"]
    return params, signal, embedded(SETTINGS.auxiliary.channels, network, first, steps)


def test_the_reward_grows_with_the_distance_to_the_nearest_views_of_the_episode():
    """The first actor's episode ends twice; the second one's is longer than k, with revisits."""
    numbers, ended, first, steps = random_moments(STEPS, ACTORS, 40)
    params, signal, phi = _observe(first, steps)
    phi = np.asarray(phi, np.float64)

    expected = np.zeros((STEPS, ACTORS))
    for actor in range(ACTORS):
        seen = [phi[0, actor]]
        for step in range(1, STEPS + 1):
            seen = [] if ended[step, actor] else seen
            distances = sorted(np.linalg.norm(phi[step, actor] - other) for other in seen)
            expected[step - 1, actor] = np.mean(distances[:NEIGHBOURS] or 0.0)
            seen.append(phi[step, actor])
    assert (expected == 0).sum() >= 2  # first views of episodes

    played = trajectory(numbers, np.zeros((STEPS, ACTORS)), signal=signal, num_actions=ACTIONS)
    adapted = METHOD.adapt(params, played, unchanged)
    np.testing.assert_allclose(adapted.fixed["distance"].deviation, expected.std(), rtol=1e-3)
    reward, _ = METHOD.reward_and_loss(adapted, played)
    np.testing.assert_allclose(reward, np.log(1 + expected / expected.std()), rtol=1e-3, atol=1e-6)
    assert METHOD.coefficient == 0.005
