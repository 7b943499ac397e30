"""Environments of other libraries as worlds: ends, resets, views, and counts."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import navix
import numpy as np
import pytest

from envs import from_gymnax, from_navix
from envs import navix as navix_adapter
from tests.support.gymnax_style import PARAMS, Walk


def played(world, actions):
    """Return the steps of one sequence of actions, [T, N]; all worlds act alike."""

    def step(state, action):
        return world.step(state, jnp.full(world.num_worlds, action))

    state, first = jax.jit(world.init)(jax.random.key(0))
    play = jax.jit(lambda state, actions: jax.lax.scan(step, state, actions)[1])
    return jax.device_get((first, play(state, np.array(actions))))


@pytest.mark.parametrize("ends", [1, 2])
def test_a_gymnax_style_environment_ends_and_begins_episodes(ends):
    world = from_gymnax(Walk(ends), PARAMS, 2).with_final_views()
    assert (world.environments, world.num_actions, world.max_steps) == (("Walk",), 2, 6)
    first, steps = played(world, [1, 1, 1, 0, 1, 0, 1, 0, 1, 1])
    assert first.view.shape == (2, *world.view_shape) == (2, 1, 1, 3)
    np.testing.assert_array_equal(steps.length[:, 0], [1, 2, 3, 1, 2, 3, 4, 5, 6, 1])
    np.testing.assert_array_equal(np.flatnonzero(steps.terminated[:, 1]), [2])
    np.testing.assert_array_equal(np.flatnonzero(steps.truncated[:, 1]), [8])
    np.testing.assert_array_equal(np.flatnonzero(steps.success[:, 1]), [2])
    np.testing.assert_allclose(steps.reward[:3, 0], [-0.1, -0.1, 1.0])
    for end in (2, 8):  # the view after an episode's end is the next one's first
        np.testing.assert_array_equal(steps.view[end], first.view)
    np.testing.assert_array_equal(steps.panorama[..., :2], steps.view[:, :, 0, 0, :2])
    places = (steps.final_view[:, 0, 0, 0, 0].astype(int) - first.view[0, 0, 0, 0]) / 16  # of 8
    np.testing.assert_allclose(places, [1, 2, 3, -1, 0, -1, 0, -1, 0, 1], atol=0.1)


def test_states_have_one_type_whatever_an_environment_leaves_weak():
    class Weak(Walk):
        def step(self, *args):
            seen, state, *others = super().step(*args)
            return seen, state._replace(time=jnp.where(state.time > 0, 1, 0)), *others

    world = from_gymnax(Weak(), PARAMS, 2)
    state, _ = jax.eval_shape(world.init, jax.random.key(0))
    after, _ = jax.eval_shape(world.step, state, np.zeros(2, np.int32))
    assert after == state  # weak types included: one step is compiled once


def test_a_step_that_returns_another_shape_than_reset_is_refused():
    class Shorter(Walk):
        def step(self, *args):
            seen, *others = super().step(*args)
            return seen[..., :1], *others

    world = from_gymnax(Shorter(), PARAMS, 2)
    state, _ = jax.eval_shape(world.init, jax.random.key(0))
    with pytest.raises(
        ValueError, match=r"step returns an observation of shape \(1,\), reset \(2,\)"
    ):
        jax.eval_shape(world.step, state, np.zeros(2, np.int32))


def test_a_step_that_returns_another_type_than_reset_is_refused():
    """Whole numbers, as `reset` would show, would cut off fractions."""

    class Whole(Walk):
        def reset(self, *args):
            seen, state = super().reset(*args)
            return seen.astype(int), state

    world = from_gymnax(Whole(), PARAMS, 2)
    state, _ = jax.eval_shape(world.init, jax.random.key(0))
    with pytest.raises(ValueError, match="observation of dtype float32, reset int32"):
        jax.eval_shape(world.step, state, np.zeros(2, np.int32))


@pytest.mark.parametrize("limit", [0, -3])
def test_a_time_limit_that_is_none_is_refused(limit):
    with pytest.raises(ValueError, match="max_steps must be a whole number of at least 1, not"):
        from_gymnax(Walk(), PARAMS, 2, max_steps=limit)


def test_a_step_without_information_is_refused(monkeypatch):
    step = Walk.step
    monkeypatch.setattr(Walk, "step", lambda *given: step(*given)[:4])
    with pytest.raises(ValueError, match="must return five or six values, not 4"):
        played(from_gymnax(Walk(), PARAMS, 2), [0])


def test_a_time_limit_of_ones_own_cuts_episodes():
    _, steps = played(from_gymnax(Walk(), PARAMS, 2, max_steps=2), [1, 0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(steps.length[:, 0], [1, 2, 1, 2, 1, 2, 1])
    np.testing.assert_array_equal(np.flatnonzero(steps.truncated[:, 0]), [1, 3, 5])
    assert not steps.terminated.any()
    with pytest.raises(ValueError, match="give max_steps"):
        from_gymnax(Walk(), SimpleNamespace(), 2)


@pytest.mark.parametrize("ends", [1, 2])
def test_of_two_time_limits_the_smaller_one_holds(ends):
    world = from_gymnax(Walk(ends), PARAMS, 1, max_steps=9)
    _, steps = played(world, [0] * 8)
    assert world.max_steps == 6
    np.testing.assert_array_equal(steps.length[:, 0], [1, 2, 3, 4, 5, 6, 1, 2])
    np.testing.assert_array_equal(np.flatnonzero(steps.truncated[:, 0]), [5])
    assert not steps.terminated.any()


@pytest.mark.parametrize("ends", [1, 2])
def test_a_success_in_the_last_step_is_no_time_out(ends):
    world = from_gymnax(Walk(ends), PARAMS, 1, max_steps=3)
    _, steps = played(world, [1, 1, 1, 0])
    np.testing.assert_array_equal(np.flatnonzero(steps.terminated[:, 0]), [2])
    assert steps.success[2, 0]
    assert not steps.truncated.any()


class Bytes(Walk):
    """Shows bytes, which need no bounds."""

    observation_space = None

    def _see(self, state):
        return jnp.full((2, 2, 3), state.place, jnp.uint8)


def test_an_observation_of_several_arrays_is_refused():
    class Two(Bytes):
        def reset(self, *args):
            seen, state = super().reset(*args)
            return (seen, seen), state

        def step(self, *args):
            return Bytes().step(*args)

    with pytest.raises(ValueError, match="an observation must be one array, not a tuple"):
        from_gymnax(Two(), PARAMS, 2)


def test_images_of_bytes_need_no_space():
    first, steps = played(from_gymnax(Bytes(), PARAMS, 1), [1, 1])
    assert first.view.shape == (1, 2, 2, 3)
    np.testing.assert_array_equal(steps.view[:, 0, 0, 0, 0], [1, 2])


def test_success_may_be_said():
    world = from_gymnax(Walk(), PARAMS, 1, success=lambda reward, terminated, info: reward < 0)
    _, steps = played(world, [1, 1, 1])
    np.testing.assert_array_equal(steps.success[:, 0], [True, True, False])
    assert world.unmeasured == ("interactions",)


def test_success_that_nothing_tells_is_not_measured():
    class Silent(Walk):
        def step(self, *args):
            *played, _ = super().step(*args)
            return *played, {}

    world = from_gymnax(Silent(), PARAMS, 1)
    assert world.unmeasured == ("interactions", "success")
    assert world.step_with_final is None
    assert not played(world, [1] * 5)[1].success.any()
    assert from_gymnax(Walk(), PARAMS, 1).unmeasured == ("interactions",)


@pytest.mark.slow
def test_navix_plays_by_its_own_rules():
    env = navix.make("Navix-Empty-5x5-v0", max_steps=5)
    actions = [2, 2, 1, 2, 2, 0, 2, 2, 2]  # to the goal, then none of it
    world = from_navix(env, 2, name="empty")
    first, steps = played(world.with_final_views(), actions)
    assert (world.environments, world.num_actions, world.max_steps) == (("empty",), 7, 5)

    timestep, step = jax.jit(env.reset)(jax.random.key(3)), jax.jit(env.step)
    np.testing.assert_array_equal(first.view[0], timestep.observation)
    for time, action in enumerate(actions[:5]):
        timestep = step(timestep, jnp.int32(action))
        assert steps.reward[time, 0] == timestep.reward
        assert steps.terminated[time, 0] == timestep.is_termination()
        np.testing.assert_array_equal(steps.final_view[time, 0], timestep.observation)
        if time < 4:
            np.testing.assert_array_equal(steps.view[time, 0], timestep.observation)
    assert steps.success[4].all()
    np.testing.assert_array_equal(steps.view[4], first.view)  # it begins anew
    np.testing.assert_array_equal(steps.length[:, 0], [1, 2, 3, 4, 5, 1, 2, 3, 4])


@pytest.mark.parametrize("name", ["categorical", "categorical_first_person"])
def test_walls_and_unseen_cells_of_navix_are_told_apart(name, monkeypatch):
    """Its space leaves out their numbers, -1 and 100."""
    observe, given, batch = getattr(navix.observations, name), [], navix_adapter.batch_of
    monkeypatch.setattr(navix_adapter, "batch_of", lambda *a: given.append(a) or batch(*a))
    from_navix(navix.make("Navix-Empty-5x5-v0", observation_fn=observe), 2)
    from_navix(navix.make("Navix-Empty-5x5-v0", observation_fn=observe), 2, bounds=(0, 9))
    from_navix(navix.make("Navix-Empty-5x5-v0"), 2)
    assert [bounds for _, _, bounds, _ in given] == [(-1, 100), (0, 9), (0, 10)]


def test_actions_must_be_discrete(monkeypatch):
    monkeypatch.setattr(Walk, "action_space", lambda walk, params: SimpleNamespace(low=0, high=1))
    with pytest.raises(ValueError, match="must be discrete"):
        from_gymnax(Walk(), PARAMS, 1)
    monkeypatch.setattr(Walk, "action_space", lambda walk, params: SimpleNamespace(n=2.5))
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        from_gymnax(Walk(), PARAMS, 1)


class Timestep(NamedTuple):
    """One of a walk to the right, with navix's interface; the third place ends the episode."""

    observation: Any
    reward: Any
    info: tuple[()] = ()

    def is_termination(self):
        return self.observation[0] == 3

    def is_truncation(self):
        return jnp.zeros((), bool)


class NavixWalk:
    """An environment with navix's interface, whose last step is paid the action."""

    action_set, max_steps, observation_space, observation_fn = (None, None), 9, None, None

    def replace(self, *, disable_autoreset):
        assert disable_autoreset
        return self

    def reset(self, key):
        del key
        return Timestep(jnp.zeros(1, jnp.uint8), jnp.zeros(()))

    def step(self, timestep, action):
        place = timestep.observation + jnp.uint8(1)
        return Timestep(place, jnp.where(place[0] == 3, action, 0).astype(jnp.float32))


def test_an_end_without_a_reward_is_no_success_in_navix():
    first, steps = played(from_navix(NavixWalk(), 2).with_final_views(), [1, 1, 1, 0, 0, 0])
    np.testing.assert_array_equal(np.flatnonzero(steps.terminated[:, 0]), [2, 5])
    np.testing.assert_array_equal(np.flatnonzero(steps.success[:, 0]), [2])
    np.testing.assert_array_equal(steps.final_view[:, 1, 0, 0, 0], [1, 2, 3, 1, 2, 3])
    np.testing.assert_array_equal(steps.view[[2, 5]], [first.view, first.view])
