"""`gymnax_env`: gymnax's contract."""

import sys
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs.minigrid
from envs.minigrid import rules, views
from envs.minigrid.generators import find
from envs.minigrid.gymnax_environment import Box, Discrete, Params
from envs.minigrid.level import REACH_GOAL
from envs.minigrid.level_text import from_text
from envs.minigrid.observations import observer_of
from tests.support.families import slow
from tests.support.play import QUICKLY

# Three ways of facing in one corridor, with the goal at its right end.
CORRIDORS = [f"WGWGWGWGWGWG\nWG{agent}    GGWG\nWGWGWGWGWGWG" for agent in (">>", "VV", "^^")]


def corridors(max_steps=12) -> Params:
    levels = [from_text(text, task=REACH_GOAL, max_steps=max_steps) for text in CORRIDORS]
    return Params(jax.tree.map(lambda *leaves: np.stack(leaves), *levels))


@jax.jit
def see(state):
    return views.egocentric(state, views.look_around(state))


def random_play(environment, keys, params, steps):
    """Return what each of `keys` sees, and the states, over some steps."""

    def play(key):
        key, reset_key = jax.random.split(key)
        _, state = environment.reset(reset_key, params)

        def step(state, key):
            action_key, step_key = jax.random.split(key)
            action = environment.action_space(params).sample(action_key)
            view, after, reward, done, info = environment.step(step_key, state, action, params)
            return after, (state, action, view, after, reward, done, info)

        return jax.lax.scan(step, state, jax.random.split(key, steps))[1]

    return jax.device_get(jax.jit(jax.vmap(play), compiler_options=QUICKLY)(keys))


@pytest.mark.parametrize("drawn", [slow("levels given"), "levels drawn at resets"])
def test_steps_follow_the_rules_and_reset(drawn):
    environment = envs.minigrid.gymnax_env("LavaGapS5")
    params = corridors() if drawn == "levels given" else environment.default_params
    keys = jax.random.split(jax.random.key(0), 5)
    before, action, view, after, reward, done, info = random_play(environment, keys, params, 60)
    flat = lambda tree: jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), tree)  # noqa: E731
    moved, outcome = jax.jit(jax.vmap(rules.step))(flat(before), flat(action))
    over = np.asarray(outcome.success | outcome.died)
    np.testing.assert_array_equal(flat(reward), outcome.reward)
    np.testing.assert_array_equal(flat(info["terminated"]), over)
    np.testing.assert_array_equal(flat(info["truncated"]), np.asarray(outcome.timed_out) & ~over)
    np.testing.assert_array_equal(done, info["terminated"] | info["truncated"])
    np.testing.assert_array_equal(info["discount"], 1.0 - done)
    assert 0 < done.sum() < done.size
    assert (after.step_count[done] == 0).all()
    going = ~flat(done)
    for now, next_ in zip(jax.tree.leaves(flat(after)), jax.tree.leaves(moved), strict=True):
        np.testing.assert_array_equal(now[going], np.asarray(next_)[going])
    np.testing.assert_array_equal(flat(view), jax.jit(jax.vmap(see))(flat(after)))
    np.testing.assert_array_equal(flat(info["final_observation"]), jax.jit(jax.vmap(see))(moved))
    begun = zip(after.level.cells[done], after.level.agent_direction[done], strict=True)
    assert len({(grid.tobytes(), int(facing)) for grid, facing in begun}) > 1  # several levels


@pytest.mark.slow
def test_many_that_end_together_begin_each_in_the_level_of_its_own_key():
    """As many more than are drawn at once; in a batch, and in batches side by side."""
    environment = envs.minigrid.gymnax_env("LavaGapS5", api="1.0")
    keys = jax.random.split(jax.random.key(0), (2, 21))
    _, state = jax.jit(jax.vmap(jax.vmap(environment.reset)))(keys)
    late = state._replace(step_count=state.step_count + jnp.arange(21) % 4 // 3 + 98)
    step = jax.vmap(environment.step, in_axes=(0, 0, None))
    _, after, _, terminated, truncated, info = jax.jit(jax.vmap(step, in_axes=(0, 0, None)))(
        keys, late, rules.LEFT
    )
    assert not terminated.any()
    np.testing.assert_array_equal(truncated, [(np.arange(21) % 4 == 3)] * 2)
    np.testing.assert_array_equal(info["truncated"], truncated)
    np.testing.assert_array_equal(info["discount"], 1.0)  # gymnax 1.0's: what follows counts
    anew = jax.tree.map(lambda leaf: np.asarray(leaf)[truncated], state)  # of the same keys
    begun = jax.tree.map(lambda leaf: np.asarray(leaf)[truncated], after)
    for now, then in zip(jax.tree.leaves(begun), jax.tree.leaves(anew), strict=True):
        np.testing.assert_array_equal(now, then)
    assert (after.step_count[~truncated] == 99).all()
    with pytest.raises(ValueError, match=r"one of 0, 1\.0, not '2'"):
        envs.minigrid.gymnax_env("LavaGapS5", api="2")


@pytest.mark.slow
def test_it_can_be_called_as_gymnaxs_own_are():
    """One environment without vmap, several vmaps in one another, and without parameters."""
    environment = envs.minigrid.gymnax_env("LavaGapS5", explore=True)
    params = jax.jit(environment.sample_params, static_argnums=1)(jax.random.key(1), 6)
    assert params.levels.task.shape == (6,)
    reset, step = jax.jit(environment.reset), jax.jit(environment.step)
    view, state = reset(jax.random.key(0), params)
    space = environment.observation_space(params)
    assert (view.shape, view.dtype) == (space.shape, space.dtype)
    assert int(view.max()) <= space.high
    _, state, reward, done, info = step(jax.random.key(1), state, 0, params)
    assert (reward.shape, done.shape, int(state.step_count)) == ((), (), 1)
    still = jax.eval_shape(environment.step_env, jax.random.key(2), state, 1)
    assert jax.tree.structure(still) == jax.tree.structure((view, state, reward, done, info))
    keys = jax.random.split(jax.random.key(3), (2, 3))
    many = jax.vmap(jax.vmap(environment.reset, in_axes=(0, None)), in_axes=(0, None))
    views_of_many, states = jax.jit(many, compiler_options=QUICKLY)(keys, params)
    one = jax.tree.map(lambda leaf: leaf[1, 2], jax.device_get(states))
    np.testing.assert_array_equal(views_of_many[1, 2], see(one))
    assert environment.action_space().n == environment.num_actions == 7
    assert space.sample(jax.random.key(0)).shape == (7, 7, 3)


def test_spaces_are_gymnaxs_where_it_is_installed(monkeypatch):
    """Learners ask `isinstance`; a stand-in for gymnax, whether it is installed or not."""
    spaces = ModuleType("gymnax.environments.spaces")
    spaces.Discrete = type("Discrete", (Discrete,), {})
    spaces.Box = type("Box", (Box,), {})
    environment = envs.minigrid.gymnax_env("LavaGapS5")
    monkeypatch.setitem(sys.modules, spaces.__name__, None)  # not installed
    ours = environment.action_space(), environment.observation_space()
    assert not isinstance(ours[0], spaces.Discrete)
    for name in ("gymnax", "gymnax.environments", spaces.__name__):
        monkeypatch.setitem(sys.modules, name, spaces)
    theirs = environment.action_space(), environment.observation_space()
    assert isinstance(theirs[0], spaces.Discrete)
    assert isinstance(theirs[1], spaces.Box)
    assert theirs == ours


def test_its_parameters_say_the_time_limit():
    environment = envs.minigrid.gymnax_env("LavaGapS5")
    params = environment.default_params
    assert params.max_steps_in_episode == 4 * 5**2
    assert envs.from_gymnax(environment, params, 2).max_steps == 4 * 5**2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("view", "levels"), [({"view": "rgb"}, 0), ({"view_size": 5, "see_through_walls": True}, 2)]
)
def test_agents_see_what_they_are_shown_also_where_episodes_begin(view, levels):
    """In fresh levels, and with a fixed set of them."""
    environment = envs.minigrid.gymnax_env("DoorKey-5x5", max_steps=3, **view)
    observer = observer_of([find("DoorKey-5x5")], **view)
    see_all = jax.jit(observer.see)
    space = environment.observation_space()
    assert (space.shape, space.high) == (observer.shape, 255 if "view" in view else 10)
    keys = jax.random.split(jax.random.key(0), 4)
    sample = jax.jit(environment.sample_params, static_argnums=1)
    params = sample(jax.random.key(1), levels) if levels else None
    seen, states = jax.jit(jax.vmap(environment.reset, (0, None)))(keys, params)
    step = jax.jit(jax.vmap(environment.step, (0, 0, None, None)))
    for _ in range(4):  # an episode ends after three
        np.testing.assert_array_equal(seen, see_all(states))
        seen, states, *_ = step(keys, states, 1, params)


@pytest.mark.slow
def test_it_plays_beside_a_learner_in_64_bits():
    environment, key = envs.minigrid.gymnax_env("LavaGapS5"), jax.random.key(0)
    with jax.enable_x64(True):
        before = jax.jit(environment.reset)(key)[1]
        after = jax.jit(environment.step)(key, before, rules.RIGHT)[1]
    jax.tree.map(lambda was, now: np.testing.assert_equal(now.dtype, was.dtype), before, after)
    assert after.level.agent_direction == (before.level.agent_direction + 1) % 4


@pytest.mark.parametrize("explore", [False, True])
def test_only_exploration_goes_on_after_success(explore):
    environment = envs.minigrid.gymnax_env("LavaGapS5", explore=explore)
    text = "WGWGWGWG\nWG>>GGWG\nWGWGWGWG"
    state = rules.start(from_text(text, task=REACH_GOAL, max_steps=12))
    step = jax.jit(environment.step_env)
    _, _, _, done, info = step(jax.random.key(0), state, rules.FORWARD)
    assert info["success"]
    assert done == info["terminated"] == (not explore)


def test_what_follows_a_time_out_counts_in_gymnax_1_0_and_nothing_follows_a_goal():
    environment = envs.minigrid.gymnax_env("LavaGapS5", api="1.0")
    text = "WGWGWGWG\nWG>>GGWG\nWGWGWGWG"
    state = rules.start(from_text(text, task=REACH_GOAL, max_steps=1))
    step = jax.jit(environment.step_env)
    for action, discount in ((rules.LEFT, 1.0), (rules.FORWARD, 0.0)):
        _, _, _, terminated, truncated, info = step(jax.random.key(0), state, action)
        assert info["discount"] == 1.0 - terminated == discount
        assert terminated != truncated


def test_episodes_begin_in_each_of_the_levels_given():
    environment = envs.minigrid.gymnax_env("LavaGapS5")
    reset = jax.jit(jax.vmap(environment.reset, (0, None)), compiler_options=QUICKLY)
    _, states = reset(jax.random.split(jax.random.key(0), 50), corridors())
    assert len(np.unique(states.level.agent_direction)) == len(CORRIDORS)


def test_pictures_have_larger_numbers_than_codes():
    rgb = envs.minigrid.gymnax_env("LavaGapS5", view="rgb").observation_space()
    assert (rgb.high, rgb.shape) == (255, (56, 56, 3))
    assert envs.minigrid.gymnax_env("LavaGapS5", view="full").observation_space().high == 10
