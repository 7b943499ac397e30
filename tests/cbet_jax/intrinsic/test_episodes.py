"""What ends an episode, and what its last step is paid.

While exploring, a success does not end an episode: an episode's memory outlives it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import AuxiliarySettings, CountSettings, TrainSettings
from cbet_jax.intrinsic import METHODS, make_intrinsic
from cbet_jax.intrinsic.interface import Params
from cbet_jax.intrinsic.ngu_episodic import bonus_of
from envs.minigrid import rules
from envs.minigrid.generators.text_levels import text_levels
from envs.minigrid.world import gridworld
from tests.support.counting import make, observe_states
from tests.support.handmade_networks import ACTION, V, X, models_params, norm, passing_on
from tests.support.moments import moment, observed, timed_out, trajectory

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

    @jax.jit
    def signals(first, steps):
        params, _, signal = observed(method, first, steps)
        if name != "noveld":
            return signal
        played = trajectory(np.zeros((PICKUPS + 1, 1)), np.zeros((PICKUPS, 1)), signal=signal)
        played = played._replace(view=jnp.concatenate([first.view[None], steps.view]))
        return method.reward_and_loss(params, played)[0]

    signal = signals(first, steps)
    if name == "ngu-episodic":
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


FINAL = np.array([[204, 51], [255, 0]])  # V[1:], but where the first actor's episode times out
TIMED_OUT = np.array([[True, False], [False, False]])
MODELS = Params(models_params(), {})
RND = Params({"predictor": passing_on(1.0)}, {"target": passing_on(3.0)})
PAID = {  # the parameters, and the reward of steps from x to y
    "rnd": (RND, lambda x, y: norm(2 * y, False)),
    "curiosity": (MODELS, lambda x, y: norm(x + 0.5 * ACTION - y, False)),
    "ride": (MODELS, lambda x, y: norm(y - x, False)),
    "noveld": (RND, lambda x, y: np.maximum(norm(2 * y, False) - 0.5 * norm(2 * x, False), 0)),
}


@pytest.mark.parametrize("name", PAID)
@pytest.mark.parametrize("known", [False, True])
def test_the_last_step_is_paid_for_the_final_view_if_it_is_known(name, known):
    """If it is not, the published methods pay the next episode's first view, NovelD nothing."""
    params, reward = PAID[name]
    settings = TrainSettings(method=name, auxiliary=AuxiliarySettings((1,), hidden_units=2))
    counted = {"states": jnp.ones((2, 2), jnp.uint32)}
    played = timed_out(trajectory(V, ACTION, signal=counted), TIMED_OUT, FINAL if known else None)
    found, _ = jax.jit(make_intrinsic(settings, 2).reward_and_loss)(params, played)
    expected = reward(X[:-1], FINAL / 255 if known else X[1:])
    if name == "noveld" and not known:
        expected = np.where(TIMED_OUT, 0, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert expected[1].any()


@pytest.mark.parametrize("name", ["ride", "noveld"])
def test_counts_within_an_episode_count_its_final_view(name):
    ends = dict(ended=[True], final=[1])
    moments = [moment([1], final=[1]), moment([0], **ends), moment([1], final=[1])]
    states = observe_states(make(name, CountSettings(capacity=16)), moments, first=moment([0]))
    assert states == [[1], [2], [1]]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("asked", [False, True])
def test_published_methods_read_final_views_only_if_asked(name, asked):
    settings = TrainSettings(method=name, auxiliary=AuxiliarySettings(final_views=asked))
    always = ("noveld", "ngu-episodic", "re3", "rnd-normalized")
    expected = name in always or (asked and name in ("rnd", "curiosity", "ride"))
    assert make_intrinsic(settings, 3).final_views == expected
