"""While exploring, a success does not end an episode: an episode's memory outlives it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import AuxiliarySettings, TrainSettings
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.intrinsic.ngu_episodic import bonus_of
from envs.minigrid import rules
from envs.minigrid.generators.text_levels import text_levels
from envs.minigrid.world import gridworld
from tests.support.moments import observed, trajectory

PICKUPS = 10
BALL = """
    WGWGWGWGWG
    WG>>AR  WG
    WG      WG
    WGWGWGWGWG
    pick up AR
"""


@pytest.fixture(scope="module")
def carried():
    """The first step of a world, and ten steps that pick up the ball: each is a success."""
    world = gridworld([text_levels("ball", [BALL])], 1, explore=True)
    action = jnp.full((PICKUPS, 1), rules.ACTIONS.index("pickup"))

    @jax.jit
    def play(key):
        state, first = world.init(key)
        return first, jax.lax.scan(world.step, state, action)[1]

    first, steps = play(jax.random.key(0))
    assert steps.success.all()
    return first, steps


def _rewards(name, carried):
    """Return the rewards of the ten steps, before they are divided by a running deviation."""
    first, steps = carried
    settings = TrainSettings(method=name, auxiliary=AuxiliarySettings((8, 16), hidden_units=32))
    method = make_intrinsic(settings, len(rules.ACTIONS))
    params, _, signal = jax.jit(lambda *seen: observed(method, *seen))(first, steps)
    if name == "noveld":
        played = trajectory(np.zeros((PICKUPS + 1, 1)), np.zeros((PICKUPS, 1)), signal=signal)
        played = played._replace(view=jnp.concatenate([first.view[None], steps.view]))
        signal, _ = method.reward_and_loss(params, played)
    elif name == "ngu-episodic":
        signal = bonus_of(signal, signal.distances[0, 0, 0])  # as far as the ball's view is
    return np.asarray(signal)[:, 0]


def test_a_view_that_succeeds_again_and_again_is_new_once(carried):
    """The first step leads to the view of the carried ball, all later ones stay in it."""
    stays = np.arange(PICKUPS)
    first, *later = _rewards("noveld", carried)
    assert first > 0.01
    np.testing.assert_array_equal(later, 0)
    first, second, *later = _rewards("e3b", carried)  # pays the view acted in
    assert first == 0 < second
    np.testing.assert_allclose(later, second / (1 + stays[1:-1] * second), rtol=1e-3)
    similar = 1e-4 / (1 - 0.008 + 1e-4)  # to the view before the ball was picked up
    found = _rewards("ngu-episodic", carried)
    np.testing.assert_allclose(found, 1 / (np.sqrt(similar + stays) + 0.001), rtol=1e-3)
    np.testing.assert_allclose(found[[1, 2, 9]], [0.999, 0.706, 0.333], atol=1e-3)
