"""The count rewards of the ablation by hand, C-BET and Count among them."""

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import CountSettings
from cbet_jax.intrinsic import COUNT_REWARDS
from cbet_jax.intrinsic.interface import Params
from tests.support.counting import NEVER, drawn_resets, make, observe, resets
from tests.support.moments import moment, trajectory

ACTORS = 5000
FORMULAS = {
    "cbet": lambda s, c: 1 / (s + c),
    "count": lambda s, _: s**-0.5,
    "ablation-states-squared": lambda s, _: 1 / s,
    "ablation-changes": lambda _, c: c**-0.5,
    "ablation-product": lambda s, c: (s * c) ** -0.5,
    "ablation-sum": lambda s, c: 0.5 * s**-0.5 + 0.5 * c**-0.5,
    "ablation-sum-squared": lambda s, c: (0.5 * s**-0.5 + 0.5 * c**-0.5) ** 2,
    "ablation-sum-inside": lambda s, c: (s + c) ** -0.5,
}


def _rewards(name, settings, counts):
    """Return the rewards of one actor, whose counts are given by kind."""
    signal = {kind: jnp.asarray(each, jnp.uint32)[:, None] for kind, each in counts.items()}
    steps = len(counts["states"])
    played = trajectory(np.zeros((steps + 1, 1)), np.zeros((steps, 1)), signal=signal)
    return make(name, settings).reward_and_loss(Params({}, {}), played)[0][:, 0]


@pytest.mark.parametrize("name", FORMULAS)
def test_rewards_are_the_formulas_of_the_ablation(name):
    states, changes = np.array(list(product((1, 2, 3, 100_000), repeat=2))).T
    expected = FORMULAS[name](states.astype(float), changes.astype(float))
    found = _rewards(name, CountSettings(), {"states": states, "changes": changes})
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert make(name, CountSettings()).coefficient == 0.005


def test_every_count_reward_has_a_formula_here():
    assert set(COUNT_REWARDS) == set(FORMULAS)


def test_only_what_is_rewarded_is_counted():
    here = moment([1, 1])
    changes_only = make("ablation-changes", NEVER)
    assert set(observe(changes_only, [here], first=here, begin=[0])[0]) == {"changes"}


@pytest.mark.parametrize(("random_resets", "probability"), [(True, 0.001), (False, 0.0)])
def test_counts_are_reset_as_those_of_cbet(random_resets, probability):
    settings = CountSettings(capacity=16, random_resets=random_resets)
    found = resets(make("ablation-product", settings), ACTORS)
    expected = drawn_resets(probability, 2, ACTORS)
    np.testing.assert_array_equal([found["states"], found["changes"]], expected)


@pytest.mark.parametrize("with_resets", [False, True])
@pytest.mark.parametrize("changes", ["egocentric", "panoramic"])
@pytest.mark.parametrize("states", ["egocentric", "panoramic"])
def test_views_and_resets_can_be_combined_under_every_formula(states, changes, with_resets):
    """The views are 2, 1, 3, 3 after 0, the panoramas 5, 10, 10, 5; with resets all is new."""
    met_states = {"egocentric": [1, 1, 1, 2], "panoramic": [1, 1, 2, 2]}[states]
    met_changes = {"egocentric": [1, 1, 2, 1], "panoramic": [1, 2, 1, 1]}[changes]
    settings = CountSettings(float(with_resets), capacity=16, states=states, changes=changes)
    moments = [moment([v], [p]) for v, p in ((2, 5), (1, 10), (3, 10), (3, 5))]
    counted = observe(make("cbet", settings), moments, first=moment([0], [0]))
    counts = {kind: [each[kind][0] for each in counted] for kind in ("states", "changes")}
    for name, formula in FORMULAS.items():
        expected = [
            formula(1.0, 1.0) if with_resets else formula(float(s), float(c))
            for s, c in zip(met_states, met_changes, strict=True)
        ]
        found = _rewards(name, settings, counts)
        np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=name)
