"""Count rewards by hand: what is counted, when, by whom, and what it is worth."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import AuxiliarySettings, CountSettings, SettingsError, TrainSettings
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.intrinsic.types import Params
from tests.support.moments import moment, trajectory

KEY = jax.random.key(0)
NEVER = CountSettings(reset_probability=0.0, capacity=16)
ALWAYS = CountSettings(reset_probability=1.0, capacity=16)
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


def _observe(method, moments, *, first, begin=()):
    """Returns what is counted at each of `moments`; a sequence begins before those in `begin`."""
    _, memory = method.init(KEY, first)
    counted, last = [], first
    for number, here in enumerate(moments):
        if number in begin:
            memory = method.begin_rollout(memory, KEY, last)
        memory, signal = method.observe(memory, KEY, here)
        counted.append({kind: count.tolist() for kind, count in signal.items()})
        last = here
    return counted


def _states(*arguments, **options):
    return [counted["states"] for counted in _observe(*arguments, **options)]


def test_states_and_changes_are_counted_for_each_actor():
    moments = [moment([1, 1], [5, 8]), moment([1, 2], [5, 8]), moment([1, 1], [10, 8])]
    counted = _observe(_make("cbet", NEVER), moments, first=moment([0, 0], [0, 8]))
    assert [c["states"] for c in counted] == [[1, 1], [2, 1], [3, 2]]
    # The first actor's changes: +5, 0, +5. The second one's: 0, 0, 0.
    assert [c["changes"] for c in counted] == [[1, 1], [1, 2], [2, 3]]


def test_certain_resets_make_every_visit_the_first():
    counted = _observe(_make("cbet", ALWAYS), [moment([1, 1], [5, 8])] * 3, first=moment([0, 0]))
    assert counted == [{"states": [1, 1], "changes": [1, 1]}] * 3


def test_a_sequence_begins_with_one_more_visit_of_the_state():
    here = moment([1, 1])
    counted = _observe(_make("cbet", NEVER), [here, here], first=here, begin=[0])
    assert [c["states"] for c in counted] == [[2, 2], [3, 3]]
    assert [c["changes"] for c in counted] == [[1, 1], [2, 2]]


def test_what_is_not_rewarded_is_not_counted():
    here = moment([1, 1])
    assert set(_observe(_make("count", NEVER), [here], first=here)[0]) == {"states"}
    changes_only = _make("ablation-changes", NEVER)
    assert set(_observe(changes_only, [here], first=here, begin=[0])[0]) == {"changes"}


def test_a_shared_table_is_visited_by_one_actor_after_the_other():
    settings = CountSettings(reset_probability=0.0, capacity=16, shared=True)
    moments = [moment([1, 1]), moment([1, 2]), moment([2, 2])]
    states = _states(_make("count", settings), moments, first=moment([0, 0]))
    assert states == [[1, 2], [3, 1], [2, 3]]


def test_a_shared_table_is_forgotten_as_one():
    settings = CountSettings(reset_probability=1.0, capacity=16, shared=True)
    assert (
        _states(_make("count", settings), [moment([1, 1])] * 2, first=moment([0, 0]))
        == [[1, 2]] * 2
    )


@pytest.mark.parametrize(
    ("view", "expected"), [("egocentric", [1, 1, 2, 2]), ("panoramic", [1, 2, 1, 3])]
)
def test_either_view_can_tell_states(view, expected):
    settings = CountSettings(reset_probability=0.0, capacity=16, states=view)
    moments = [moment([v], [p]) for v, p in ((1, 5), (2, 5), (1, 6), (2, 5))]
    states = _states(_make("count", settings), moments, first=moment([0]))
    assert states == [[number] for number in expected]


@pytest.mark.parametrize(
    ("view", "expected"), [("egocentric", [1, 1, 2, 1]), ("panoramic", [1, 2, 1, 1])]
)
def test_either_view_can_tell_changes(view, expected):
    """The views change by +2, -1, +2, 0; the panoramas by +5, +5, 0, -5."""
    settings = CountSettings(reset_probability=0.0, capacity=16, changes=view)
    moments = [moment([v], [p]) for v, p in ((2, 5), (1, 10), (3, 10), (3, 5))]
    counted = _observe(_make("ablation-changes", settings), moments, first=moment([0], [0]))
    assert [c["changes"] for c in counted] == [[number] for number in expected]


@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize("changes", ["egocentric", "panoramic"])
@pytest.mark.parametrize("states", ["egocentric", "panoramic"])
def test_views_and_resets_can_be_combined_under_every_formula(states, changes, resets):
    """The views are 2, 1, 3, 3 after 0, the panoramas 5, 10, 10, 5; with resets all is new."""
    met_states = {"egocentric": [1, 1, 1, 2], "panoramic": [1, 1, 2, 2]}[states]
    met_changes = {"egocentric": [1, 1, 2, 1], "panoramic": [1, 2, 1, 1]}[changes]
    settings = CountSettings(float(resets), capacity=16, states=states, changes=changes)
    moments = [moment([v], [p]) for v, p in ((2, 5), (1, 10), (3, 10), (3, 5))]
    counted = _observe(_make("cbet", settings), moments, first=moment([0], [0]))
    signal = {kind: jnp.array([each[kind] for each in counted], jnp.uint32) for kind in counted[0]}
    played = trajectory(np.zeros((5, 1)), np.zeros((4, 1)), signal=signal)
    for name, formula in FORMULAS.items():
        expected = [
            formula(1.0, 1.0) if resets else formula(float(s), float(c))
            for s, c in zip(met_states, met_changes, strict=True)
        ]
        reward = _make(name, settings).reward(Params({}, {}), played)[:, 0]
        np.testing.assert_allclose(reward, expected, rtol=1e-6, err_msg=name)


def test_resets_come_as_often_as_asked_for():
    probability, steps = 0.2, 2000
    method = _make("cbet", CountSettings(reset_probability=probability, capacity=16))
    tallies = _play_still(method, actors=2, steps=steps)
    spread = 5 * np.sqrt(steps * probability * (1 - probability))
    for kind in ("states", "changes"):
        np.testing.assert_allclose(_resets(tallies, kind), steps * probability, atol=spread)
    assert not np.array_equal(_resets(tallies, "states"), _resets(tallies, "changes"))


@pytest.mark.parametrize(
    ("method", "random_resets", "probability"),
    [
        ("cbet", True, 0.001),
        ("cbet", False, 0),
        ("count", True, 0),
        ("ablation-product", True, 0.001),
        ("ablation-product", False, 0),
    ],
)
def test_each_method_has_its_own_reset_probability(method, random_resets, probability):
    actors, steps = 5000, 40
    settings = CountSettings(capacity=16, random_resets=random_resets)
    tallies = _play_still(_make(method, settings), actors, steps)
    resets, expected = _resets(tallies, "states").sum(), actors * steps * probability
    assert abs(resets - expected) <= 5 * np.sqrt(expected)


@pytest.mark.parametrize(
    ("method", "changes", "slots"),
    [
        ("cbet", {}, 2**14),
        ("cbet", {"reset_probability": 0.0}, 2**21),
        ("cbet", {"reset_probability": 0.0, "capacity": 64}, 64),
        ("cbet", {"random_resets": False}, 2**21),
        ("cbet", {"random_resets": False, "reset_probability": 0.001}, 2**14),
        ("ride", {"random_resets": False}, 2**14),
        ("count", {}, 2**21),
        ("count", {"reset_probability": 0.001}, 2**14),
        ("count", {"reset_probability": 0.001, "shared": True}, 2**20),
        ("count", {"shared": True}, 2**26),
        ("ride", {}, 2**14),
    ],
)
def test_what_is_never_forgotten_has_more_room(method, changes, slots):
    made = _make(method, CountSettings(**changes))  # for 40 actors, 1,250,000 steps of each
    _, tallies = jax.eval_shape(made.init, KEY, moment([0]))
    assert tallies["states"].tables.slots.shape == (1, slots, 3)


def _play_still(method, actors, steps):
    here = moment([1] * actors)
    _, tallies = method.init(KEY, here)
    keys = jax.random.split(KEY, steps)
    return jax.lax.scan(lambda memory, key: method.observe(memory, key, here), tallies, keys)[0]


def _resets(tallies, kind):
    return np.asarray(tallies[kind].tables.generation) - 1


@pytest.mark.parametrize("name", FORMULAS)
def test_rewards_are_the_formulas_of_the_ablation(name):
    states, changes = np.array(list(product((1, 2, 3, 100_000), repeat=2)), np.uint32).T
    signal = {"states": jnp.array(states)[None], "changes": jnp.array(changes)[None]}
    made = _make(name, CountSettings())
    expected = FORMULAS[name](states.astype(float), changes.astype(float))
    reward = made.reward(
        Params({}, {}), trajectory(np.zeros((2, 16)), np.zeros((1, 16)), signal=signal)
    )
    np.testing.assert_allclose(reward[0], expected, rtol=1e-6)
    assert made.coefficient == 0.005


def test_rides_counts_are_forgotten_at_the_end_of_an_episode_and_at_success():
    """At an end, the next episode's first view is counted before its counts are forgotten."""
    moments = [
        moment([1]),
        moment([1]),
        moment([1], ended=[True]),
        moment([1]),
        moment([2]),
        moment([1], success=[True]),
        moment([1]),
    ]
    method = _make("ride", CountSettings(capacity=16))
    states = _states(method, moments, first=moment([0]))
    assert states == [[1], [2], [3], [1], [1], [2], [1]]


def test_rides_counts_are_forgotten_once_more_when_a_sequence_begins_at_an_end():
    moments = [moment([1]), moment([1], ended=[True]), moment([1]), moment([1])]
    method = _make("ride", CountSettings(capacity=16))
    assert _states(method, moments, first=moment([0]), begin=[2]) == [[1], [2], [1], [2]]
    assert _states(method, moments, first=moment([0]), begin=[3]) == [[1], [2], [1], [3]]


def test_rides_counts_are_each_actors_own():
    moments = [moment([1, 1]), moment([1, 1], ended=[True, False]), moment([1, 1])]
    method = _make("ride", CountSettings(capacity=16))
    assert _states(method, moments, first=moment([0, 0])) == [[1, 1], [2, 2], [1, 3]]


@pytest.mark.parametrize("changes", [{"shared": True}, {"reset_probability": 0.001}])
def test_ride_refuses_counts_that_outlive_an_episode(changes):
    with pytest.raises(SettingsError, match="within an episode"):
        _make("ride", CountSettings(**changes))


def _make(name, settings):
    auxiliary = AuxiliarySettings(channels=(1,))
    train = TrainSettings(method=name, counts=settings, auxiliary=auxiliary)
    return make_intrinsic(train, num_actions=3)
