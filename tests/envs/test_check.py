"""What is wrong with a world is found, and said in words."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs import from_gymnax
from envs.check import CHECKS, Check, check_world, first_problem
from tests.support.gymnax_style import PARAMS, Walk
from tests.support.worlds import corridor, single_env

CORRIDOR = corridor(3)
LONG = corridor(3, max_steps=5_000)  # more than are played
NAMES = ["record", "shapes and types", *CHECKS]


def changed(**fields):
    """Return the corridor, with a function of each step in place of some fields."""

    def change(state, seen):
        return state, seen._replace(**{name: of(seen) for name, of in fields.items()})

    return replace(
        CORRIDOR,
        init=lambda key: change(*CORRIDOR.init(key)),
        step=lambda state, action: change(*CORRIDOR.step(state, action)),
    )


def stepping(step, world=CORRIDOR):
    """Return the corridor with another step, of its state, its own next state, and what is seen."""
    return replace(
        world, step=lambda state, action: step(state, action, *world.step(state, action))
    )


def passes(world):
    assert first_problem(world) == ""
    assert list(check_world(world)) == [Check(name) for name in NAMES]


@pytest.mark.parametrize(
    "world", [CORRIDOR, from_gymnax(Walk(), PARAMS, 2)], ids=["corridor", "gymnax style"]
)
def test_worlds_of_the_tests_pass(world):
    passes(world)


@pytest.mark.slow  # their own tests compare gridworlds by default
def test_a_gridworld_passes():
    passes(single_env("DoorKey-5x5", 3, explore=False))


def _endless(state, action, after, seen):
    return (after[0], state[1] + 1), seen._replace(length=state[1] + 1)


def _stays_at_the_end(state, action, after, seen):
    place = jnp.clip(state[0] + action - 1, 0, 3)
    spread = place.astype(jnp.uint8)[:, None, None, None]
    return (place, after[1]), seen._replace(view=jnp.broadcast_to(spread, seen.view.shape))


def _herd(state, action, after, seen):
    return after, seen._replace(reward=jnp.full(3, action.sum(), jnp.float32))


def _late_herd(state, action, after, seen):
    late, herd = seen.length >= 10, _herd(state, action, after, seen)[1].reward
    return after, seen._replace(reward=jnp.where(late, herd, seen.reward))


def _finals(final):
    """Return the corridor, with a function of a step with final views in place of its own."""

    def step(state, action):
        after, seen = CORRIDOR.step_with_final(state, action)
        return after, final(seen)

    return replace(CORRIDOR, step_with_final=step)


def _secret(state, action, after, seen):
    shape = jax.ShapeDtypeStruct((3,), jnp.float32)
    drawn = jax.pure_callback(
        lambda _: np.random.default_rng().random(3, np.float32), shape, action
    )
    return after, seen._replace(reward=drawn)


def _weak(key):
    (place, _), seen = CORRIDOR.init(key)
    return (place, jnp.full(3, 0)), seen


@pytest.mark.parametrize(
    ("world", "name", "words"),
    [
        (replace(CORRIDOR, view_shape=(7, 7, 4)), "record", "view_shape must be (height, width"),
        (
            replace(CORRIDOR, other_view_shape=(7, 7, 4)),
            "record",
            "other_view_shape must be (height",
        ),
        (
            replace(CORRIDOR, other_view_shape=(7, 7, 3)),
            "shapes and types",
            "init: other_view must be uint8[3, 7, 7, 3], not NoneType",
        ),
        (
            _finals(lambda seen: seen._replace(final_view=None)),
            "shapes and types",
            "step_with_final: final_view must be uint8[3, 7, 7, 3], not NoneType",
        ),
        (
            _finals(lambda seen: seen._replace(final_view=1 - seen.final_view)),
            "final views",
            "step 0 of world 0: final_view must be the view, for the episode goes on",
        ),
        (
            _finals(lambda seen: seen._replace(reward=seen.reward + 1)),
            "final views",
            "reward differs between step and step_with_final",
        ),
        (replace(CORRIDOR, num_actions=0), "record", "num_actions must be a whole number"),
        (
            replace(CORRIDOR, unmeasured=("reward",)),
            "record",
            "unmeasured must be a tuple of success",
        ),
        (
            changed(view=lambda seen: seen.view / 255),
            "shapes and types",
            "init: view must be uint8[3, 7, 7, 3], not float32[3, 7, 7, 3]",
        ),
        (
            changed(panorama=lambda seen: seen.panorama[:, 0]),
            "shapes and types",
            "init: panorama must be integers[3, numbers], not uint16[3]",
        ),
        (
            stepping(lambda state, action, after, seen: ((after[0], after[1] * 1.0), seen)),
            "shapes and types",
            "the state that step returns differs from init's: state[1] is float32[3], not int32[3]",
        ),
        (
            replace(CORRIDOR, report=lambda state: {"places": state[0]}),
            "shapes and types",
            "report: 'places' must be one real number, not int32[3]",
        ),
        (
            replace(CORRIDOR, step=lambda state, action: state),
            "shapes and types",
            "step must return a Step second, not int32[3]",
        ),
        (changed(reward=lambda seen: seen.reward + 1), "first moment", "reward must be zero"),
        (stepping(_secret), "same key, same numbers", "reward of a step differs between two plays"),
        (stepping(_herd), "worlds are independent", "reward depends on the actions in another"),
        (
            stepping(lambda *a: (a[2], a[3]._replace(terminated=a[3].truncated))),
            "one kind of end",
            "step 6 of world 0: terminated and truncated are both true",
        ),
        (
            stepping(_endless),
            "lengths of episodes",
            "step 7 of world 0: length must be 1, the first of a new episode, not 8",
        ),
        (
            replace(CORRIDOR, max_steps=5),
            "lengths of episodes",
            "step 4 of world 0: the episode goes on after max_steps, 5",
        ),
        (stepping(_stays_at_the_end), "automatic resets", "the view is not the first one of"),
        (stepping(_late_herd, LONG), "worlds are independent", "step 9 of world 0: reward depends"),
        (
            stepping(lambda *a: (a[2], a[3]._replace(reward=jnp.full(3, jnp.nan)))),
            "numbers",
            "step 0 of world 0: the reward is not finite",
        ),
        (
            changed(environment=lambda seen: seen.environment + 1),
            "numbers",
            "step 0 of world 0: environment must be 0..0",
        ),
        (changed(view=lambda seen: seen.view * 0), "counts", "the view never changes"),
        (
            changed(panorama=lambda seen: seen.panorama * 0),
            "counts",
            "the panorama never changes, but views do",
        ),
    ],
)
def test_a_broken_world_is_caught_with_the_right_words(world, name, words):
    found = next((check for check in check_world(world) if check.problem), None)
    assert found is not None
    assert found.name == name
    assert words in found.problem
    assert str(found) == f"{name}: failed: {found.problem}"


def test_a_state_of_a_weak_type_is_named():
    strong = stepping(lambda *a: ((a[2][0], a[2][1].astype(jnp.int32)), a[3]))
    found = {check.name: check for check in check_world(replace(strong, init=_weak))}
    assert "traced 2 times in 3 steps, not once: state[1] has a weak" in found["one trace"].problem


def test_long_episodes_are_no_problem_but_what_follows_them_is_not_checked():
    found = {check.name: check for check in check_world(LONG)}
    skipped = found.pop("automatic resets")
    assert skipped.skipped == "no episode ended in the 2000 steps that were played"
    assert not any(check.problem or check.skipped for check in found.values())


def test_nothing_is_played_of_a_world_of_the_wrong_shape():
    checks = list(check_world(changed(reward=lambda seen: seen.length)))
    assert [check.name for check in checks] == NAMES
    assert all(check.skipped == "shapes and types must be right first" for check in checks[2:])


def test_a_refresh_that_returns_another_type_than_init_is_named():
    world = replace(CORRIDOR, refresh=lambda state: (state[0], state[1] * 1.0))
    problems = {check.name: check.problem for check in check_world(world) if check.problem}
    assert problems.keys() == {"shapes and types"}
    said = "the state that refresh returns differs from init's: state[1] is float32[3], not int32"
    assert said in problems["shapes and types"]
