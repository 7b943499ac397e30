"""Gridworlds with Stoa's interface, tested against the package."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stoa import AddRNGKey, AutoResetWrapper, Environment, RecordEpisodeMetrics, StepType
from stoa.core_wrappers.vmap import VmapWrapper

import envs.minigrid

pytestmark = pytest.mark.slow
NAME, SEED, STEPS = "LavaGapS5", 3, 150


@pytest.fixture(scope="module")
def played():
    """The same random actions with gymnax's interface, and with Stoa's and its wrappers."""
    gymnax, stoa = envs.minigrid.gymnax_env(NAME), envs.minigrid.stoa_env(NAME)
    params = gymnax.sample_params(jax.random.key(0), 1)  # every episode has the same level
    actions = jax.random.randint(jax.random.key(SEED), (STEPS, 2), 0, gymnax.num_actions)

    class OneLevel(type(stoa)):
        def reset(self, rng_key, env_params=None):
            return super().reset(rng_key, params)

    wrapped = RecordEpisodeMetrics(AddRNGKey(OneLevel(gymnax)))
    wrapped = VmapWrapper(AutoResetWrapper(wrapped, next_obs_in_extras=True))

    @jax.jit
    def play(keys):
        first, state = jax.vmap(lambda key: gymnax.reset(key, params))(keys)

        def step(state, action):
            each = jax.vmap(lambda key, state, action: gymnax.step(key, state, action, params))
            view, state, reward, _, info = each(keys, state, action)
            return state, (view, reward, info)

        states, time_step = wrapped.reset(keys)
        theirs = jax.lax.scan(step, state, actions)[1]
        return (first, theirs), (time_step, jax.lax.scan(wrapped.step, states, actions)[1])

    return stoa, jax.device_get(play(jax.random.split(jax.random.key(1), 2)))


def test_stoas_wrappers_play_as_gymnax_does(played):
    _, ((first, (view, reward, info)), (begun, steps)) = played
    np.testing.assert_array_equal(begun.observation, first)
    assert (begun.step_type == StepType.FIRST).all()
    np.testing.assert_array_equal(steps.observation, view)
    np.testing.assert_array_equal(steps.reward, reward)
    np.testing.assert_array_equal(steps.extras["next_obs"], info["final_observation"])
    np.testing.assert_array_equal(steps.extras["success"], info["success"])


def test_ends_are_told_apart(played):
    _, ((_, (_, _, info)), (_, steps)) = played
    assert info["terminated"].any()
    np.testing.assert_array_equal(steps.step_type == StepType.TERMINATED, info["terminated"])
    np.testing.assert_array_equal(steps.step_type == StepType.TRUNCATED, info["truncated"])
    np.testing.assert_array_equal(steps.discount, 1.0 - info["terminated"])
    metrics = steps.extras["episode_metrics"]
    np.testing.assert_array_equal(
        metrics["is_terminal_step"], info["terminated"] | info["truncated"]
    )


def test_a_time_limit_truncates():
    env = envs.minigrid.stoa_env(NAME)
    state, _ = jax.jit(env.reset)(jax.random.key(0))
    turns = jnp.zeros(env.unwrapped._env.default_params.max_steps_in_episode, jnp.int32)
    _, steps = jax.jit(lambda state: jax.lax.scan(env.step, state, turns))(state)
    assert (steps.step_type[:-1] == StepType.MID).all()
    assert steps.step_type[-1] == StepType.TRUNCATED
    assert steps.discount[-1] == 1


def test_spaces_hold_what_is_played(played):
    stoa, (_, (_, steps)) = played
    assert isinstance(stoa, Environment)
    assert stoa.observation_space().contains(jnp.asarray(steps.observation[0, 0]))
    assert stoa.action_space().num_values == 7
