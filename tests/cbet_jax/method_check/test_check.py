"""The contract of a method: the package's own keep it, and what breaks it is told in words."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import SettingsError, TrainSettings
from cbet_jax.intrinsic import METHODS, own
from cbet_jax.intrinsic.interface import Intrinsic, Params, each_step
from cbet_jax.method_check.check import (
    CHECKS,
    REACHES,
    RESETS,
    check_method,
    check_settings,
    refuse_misfit,
)
from cbet_jax.method_check.contract import FURTHER
from cbet_jax.method_check.walk import STEPS, make_trajectory, random_walk
from envs.minigrid import make_world
from tests.support.families import others_slow
from tests.support.own_method import own_method

ONES = {"coefficient": 1.0, "reward": lambda params, played: jnp.ones(played.steps.action.shape)}
# The formulas of others have tests of their own.
DIFFERENT = ("cbet", "none")


@pytest.mark.parametrize("name", others_slow(METHODS, DIFFERENT))
def test_the_methods_of_the_package_keep_it(name):
    lines = [str(check) for check in check_method(check_settings(name), learns=False)]
    assert len(lines) == len(CHECKS)
    assert [line for line in lines if not line.endswith(": ok")] == [lines[-1]]
    assert lines[-1].startswith(f"{REACHES}: skipped: ")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in METHODS if name != "none"])
def test_their_rewards_lead_further_than_chance(name):
    assert str(list(check_method(check_settings(name)))[-1]) == f"{REACHES}: ok"


def _same_places(params, played):
    return (played.view[1:] == played.view[:-1]).all((-3, -2, -1)).astype(jnp.float32)


def _row(params, played):
    return jnp.ones(len(played.view) - 1)


def _one_signal(params, memory, key, experience):
    return memory, jnp.ones(2)


def _weak(key, step):
    return Params({}, {"scale": jnp.asarray(1.0)}), ()


def _to_float32(params, played, mean):
    return params._replace(fixed={"scale": params.fixed["scale"].astype(jnp.float32)})


def _mean_of_its_own(params, played, mean):
    return params._replace(fixed={"scale": played.view.astype(jnp.float32).mean()})


def _strong(key, step):
    return Params({}, {"scale": jnp.zeros(())}), ()


def _over_distance(params, played):
    difference = (played.view[1:] - played.view[:-1].astype(jnp.float32)).mean((-3, -2, -1))
    return 0 / jnp.abs(difference)


def _drawn_by_numpy(params, played):
    return jnp.full(played.steps.action.shape, np.random.default_rng().uniform())


def _two_networks(key, step):
    return Params({"used": jnp.ones(2), "forgotten": jnp.ones(2)}, {}), ()


def _one_learns(params, played):
    return ONES["reward"](params, played), (params.learnt["used"].sum(), {})


def _both_learn(params, played):
    total = sum(leaf.sum() for leaf in params.learnt.values())
    return ONES["reward"](params, played), (total, {})


def _loss_named(params, played):
    return ONES["reward"](params, played), (jnp.zeros(()), {"size": jnp.zeros(())})


def _kept_outside(function):
    """Return a function that adds to its numbers those of its call before."""
    before = [0.0]

    def added(*arguments):
        found = function(*arguments)
        before[0] = jax.tree.map(lambda number: number + jax.tree.leaves(before[0])[0], found)
        return before[0]

    return added


def _over_the_largest(params, played):
    places = played.view[1:, :, 0, 0, 0] + 1.0
    return places / jax.lax.cummax(places, reverse=True)


def _less_the_others(params, played):
    places = played.view[1:, :, 0, 0, 0].astype(jnp.float32)
    return places - places.mean(1, keepdims=True)


def _no_memory(key, step):
    return Params({}, {}), jnp.zeros(len(step.view))


def _two_memories(key, step):
    return Params({}, {}), (jnp.zeros(len(step.view)),) * 2


def _sum(forget, params, memory, key, experience):
    """Remember the sum of the places; `forget` says what is left of it."""
    memory = forget(memory, experience.step) + experience.step.view[:, 0, 0, 0]
    return memory, memory


def _lifelong_and_episodic(params, memory, key, experience):
    """Remember two sums of the places, of which one begins anew with each episode."""
    place = experience.step.view[:, 0, 0, 0]
    lifelong, episodic = memory[0] + place, _all(memory[1], experience.step) + place
    return (lifelong, episodic), lifelong * episodic


def _look_around(params, memory, key, experience):
    return memory, experience.step.panorama[:, 0].astype(jnp.float32)


def _half(memory, step):
    return jnp.where(step.terminated | step.truncated, 0.5 * memory, memory)


def _after_time_outs(memory, step):
    return jnp.where(step.truncated, 0.0, memory)


def _all(memory, step):
    return jnp.where(step.terminated | step.truncated, 0.0, memory)


def _never(memory, step):
    return memory


def _signal(params, played):
    return played.signal


REMEMBERS = {"coefficient": 1.0, "init": _no_memory, "reward": _signal}
BROKEN = {
    "shapes and types": [
        (
            {"coefficient": 1.0, "reward": _row},
            "float32[12, 3], of steps and actors, not float32[12]",
        ),
        *(
            ({**ONES, "coefficient": wrong}, "coefficient must be a finite number of at least 0")
            for wrong in (-1.0, np.ones(2), np.inf, 1j)
        ),
        ({**ONES, "init": lambda key, step: ((), ())}, "init must return Params first, not ()"),
        *(
            ({**ONES, "metrics": lambda memory, metric=metric: {"my_number": metric}}, words)
            for metric, words in (
                (jnp.ones((), bool), "single real numbers, but my_number is bool[]"),
                (jnp.ones((), jnp.complex64), "but my_number is complex64[]"),
                (jnp.ones(2), "but my_number is float32[2]"),
            )
        ),
        ({**ONES, "metrics": lambda memory: {0: jnp.ones(())}}, "metrics must have names, not 0"),
        (
            {**ONES, "reward": _loss_named, "metrics": lambda memory: {"size": jnp.ones(())}},
            "two metrics have the name size",
        ),
        (
            {**ONES, "metrics": lambda memory: {"success": jnp.ones(())}},
            "two metrics have the name success",
        ),
        *(
            ({**ONES, name: left}, f"{name} reads an array that was left in a variable")
            for name, left in (
                ("reward", _kept_outside(ONES["reward"])),
                ("metrics", _kept_outside(lambda memory: {"size": jnp.zeros(())})),
            )
        ),
        (
            {**REMEMBERS, "observe": _one_signal},
            "a row for each of 12 steps and 3 actors, but an array is float",
        ),
    ],
    "one trace": [({**ONES, "init": _weak, "adapt": _to_float32}, "it is compiled again")],
    "finite": [
        ({"coefficient": 1.0, "reward": _over_distance}, "reward must be finite, but is not")
    ],
    "same key, same numbers": [
        ({"coefficient": 1.0, "reward": _drawn_by_numpy}, "played.reward differs when the method")
    ],
    "adapt keeps what is learnt": [
        (
            {
                **{**ONES, "init": _two_networks, "reward": _both_learn},
                "adapt": lambda params, *_: params._replace(
                    learnt={**params.learnt, "used": jnp.zeros(2)}
                ),
            },
            "changes learnt used",
        )
    ],
    "adapt agrees on all devices": [
        ({**ONES, "init": _strong, "adapt": _mean_of_its_own}, "fixed.scale differs from device")
    ],
    "every network learns": [
        ({**ONES, "init": _two_networks, "reward": _one_learns}, "by forgotten is 0")
    ],
    "no look ahead": [
        ({"coefficient": 1.0, "reward": _over_the_largest}, "nothing later than view[")
    ],
    "actors are separate": [
        ({"coefficient": 1.0, "reward": _less_the_others}, "only the other actors play differ")
    ],
    "panoramas as said": [
        ({**REMEMBERS, "observe": _look_around, "panoramas": False}, "when only panoramas do")
    ],
    RESETS: [
        ({**REMEMBERS, "observe": partial(_sum, _half)}, "reset the whole memory there"),
        (
            {**REMEMBERS, "init": _two_memories, "observe": _lifelong_and_episodic},
            "still depend on what was seen in it: reset the whole memory there, or add --lasting "
            "if a part is meant to outlive episodes",
        ),
        (
            {**REMEMBERS, "observe": partial(_sum, _after_time_outs)},
            "end by truncated are forgotten, but those by terminated are not",
        ),
    ],
}


@pytest.fixture
def check(monkeypatch):
    """Check a method of these parts: return what failed, by name."""

    def problems(parts, **options):
        parts = {**parts, "observe": each_step(parts["observe"])} if "observe" in parts else parts
        monkeypatch.setitem(METHODS, "broken", lambda settings, actions: Intrinsic("x", **parts))
        options = {"learns": False, **options}
        checks = check_method(check_settings("broken"), **options)
        return {check.name: check.problem for check in checks if check.problem}

    return problems


@pytest.mark.parametrize(
    ("name", "parts", "words"),
    [(name, *case) for name, cases in BROKEN.items() for case in cases],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_broken_is_told_by_its_own_check_only(name, parts, words, check):
    found = check(parts)
    assert found.keys() == {name}
    assert words in found[name]


def test_a_memory_that_begins_anew_or_lasts_is_well(check):
    for forget in (_all, _never):
        assert not check({**REMEMBERS, "observe": partial(_sum, forget)})
    mixed = {"init": _two_memories, "observe": _lifelong_and_episodic}
    for parts in ({"observe": partial(_sum, _half)}, mixed):
        assert not check({**REMEMBERS, **parts}, lasting=True)


def test_a_reward_for_staying_leads_nowhere(check):
    found = check({"coefficient": 0.1, "reward": _same_places}, learns=True)
    assert found.keys() == {REACHES}
    assert f"a random one to 5.5; {FURTHER} times as far was expected" in found[REACHES]


def test_what_a_method_raises_is_told(check, monkeypatch):
    def raising(*arguments):
        raise KeyError("nothing")

    assert check({**ONES, "reward": raising})["shapes and types"].endswith("KeyError: 'nothing'")
    with pytest.raises(SettingsError, match="did you mean"):
        list(check_method(check_settings("cebt")))


SURPRISE = """
    import jax
    from cbet_jax.intrinsic.interface import Intrinsic

    def make(settings, num_actions):
        def reward(params, trajectory):
            steps = trajectory.steps
            chosen = jax.nn.one_hot(steps.action, num_actions) * jax.nn.log_softmax(steps.logits)
            return -chosen.sum(axis=-1)

        return Intrinsic("surprise", 0.01, reward)
"""


def test_logits_are_of_the_actions_of_the_world(tmp_path):
    world = make_world(["Unlock"], 2, explore=True)
    with own_method(tmp_path, SURPRISE) as path:
        settings = TrainSettings(method=own.load(f"{path}:make"))
        refuse_misfit(settings, world.init, world.num_actions)


def _next_place(params, played):
    places = played.view[1:, :, 0, 0, 0].astype(jnp.float32)
    return jnp.concatenate([places[1:], places[-1:]])


def test_a_reward_that_looks_a_single_step_ahead_is_found(check):
    assert check({"coefficient": 1.0, "reward": _next_place}).keys() == {"no look ahead"}


def _until_the_second_rollout(params, memory, key, experience):
    memory = memory + 1
    return memory, 1 / (STEPS + 1 - memory)


def test_a_number_that_is_not_finite_until_a_second_rollout_is_found(check):
    found = check({**REMEMBERS, "observe": _until_the_second_rollout})
    assert found.keys() == {"finite"}
    assert "must be finite, but is not in a second rollout" in found["finite"]


def test_an_episode_that_ends_or_succeeds_begins_anew_as_in_a_rollout():
    walk = random_walk(0)
    first = make_trajectory(walk, ()).first
    ended = walk.steps.terminated | walk.steps.truncated | walk.steps.success
    np.testing.assert_array_equal(first, np.concatenate([np.zeros_like(ended[:1]), ended]))
    assert ended.sum() == 3
