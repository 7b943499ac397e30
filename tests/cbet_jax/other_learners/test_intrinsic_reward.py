"""`IntrinsicReward`: the rewards are those of the formula, in our worlds and in MiniGrid's own."""

from dataclasses import replace
from functools import cache

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from minigrid.wrappers import ImgObsWrapper

import cbet_jax
from cbet_jax import SettingsError, TrainSettings
from cbet_jax.config import AuxiliarySettings, CountSettings, OptimizerSettings
from cbet_jax.other_learners.intrinsic_reward import Panorama, autoreset_mode
from envs.minigrid import export, gym_vector
from tests.support.families import others_slow
from tests.support.minigrid_reference import rebuild

NAME, ENVS, MODES = "DoorKey-5x5", 4, ("NextStep", "SameStep")
SMALL = TrainSettings(frames=1000, auxiliary=AuxiliarySettings(channels=(4,), hidden_units=8))
WITHOUT_RESETS = replace(SMALL, counts=CountSettings(random_resets=False))
FAST = replace(SMALL, optimizer=OptimizerSettings(learning_rate=3e-3))
PLAY = {"a": 7, "p": [0.2, 0.2, 0.3, 0.1, 0.05, 0.1, 0.05]}


class SameLevel(gymnasium.Wrapper):
    """One of MiniGrid's environments, in the level that our vector has begun at its place."""

    def __init__(self, env, vector, index):
        super().__init__(env)
        self.vector, self.index = vector, index

    def reset(self, **options):
        self.env.reset(**options)
        states = jax.device_get(self.vector.states)
        own = jax.tree.map(lambda leaf: leaf[self.index], states)
        rebuild(export(own), self.unwrapped)
        return self.unwrapped.gen_obs(), {}


@cache
def ours_in(mode):
    """Our vector, compiled once for all tests."""
    return gym_vector(NAME, ENVS, autoreset_mode=mode)


def beside(vector, mode, *wrappers):
    """MiniGrid's own vector, whose levels are always those of ours."""
    places = iter(range(ENVS))
    same = lambda env: SameLevel(env, vector, next(places))  # noqa: E731
    options = {"vector_kwargs": {"autoreset_mode": mode}, "wrappers": (same, *wrappers)}
    return gymnasium.make_vec(f"MiniGrid-{NAME}-v0", ENVS, "sync", **options)


@pytest.mark.parametrize("mode", others_slow(MODES, ()))
def test_rewards_are_the_same_whatever_agents_see(mode):
    made = [
        cbet_jax.IntrinsicReward(gym_vector(NAME, ENVS, autoreset_mode=mode, max_steps=9, **view))
        for view in ({}, {"view": "rgb", "see_through_walls": True})
    ]
    assert [envs.reset(seed=3)[0].shape[1:] for envs in made] == [(7, 7, 3), (56, 56, 3)]
    for actions in np.random.default_rng(0).choice(**PLAY, size=(40, ENVS)):
        usual, drawn = (envs.step(actions) for envs in made)
        np.testing.assert_array_equal(usual[1], drawn[1])
        np.testing.assert_array_equal(usual[-1]["panorama"], drawn[-1]["panorama"])


@pytest.mark.parametrize("steps", others_slow((270, 2000), (270,)))
@pytest.mark.parametrize("mode", others_slow((*MODES, "Disabled"), MODES[:1]))
def test_minigrids_own_environments_give_the_same_rewards(mode, steps):
    """Exactly, in the same levels, past the time limit of 250 steps."""
    vector, wrappers = ours_in(mode), [ImgObsWrapper] * (mode == "SameStep")
    ours = cbet_jax.IntrinsicReward(vector, "cbet", coefficient=0.01)
    theirs = cbet_jax.IntrinsicReward(beside(vector, mode, *wrappers), "cbet", coefficient=0.01)
    ours.reset(seed=1)
    theirs.reset(seed=1)
    random, total, ends = np.random.default_rng(0), 0.0, 0
    for _ in range(steps):
        actions = random.choice(size=ENVS, **PLAY)
        _, reward, terminated, truncated, info = ours.step(actions)
        _, other, *flags, others = theirs.step(actions)
        np.testing.assert_array_equal(info["intrinsic_reward"], others["intrinsic_reward"])
        np.testing.assert_allclose(info["extrinsic_reward"], others["extrinsic_reward"], atol=1e-6)
        np.testing.assert_array_equal(reward, info["extrinsic_reward"] + info["intrinsic_reward"])
        np.testing.assert_allclose(reward, other, atol=1e-6)
        ended = terminated | truncated
        np.testing.assert_array_equal(ended, flags[0] | flags[1])
        if mode == "Disabled" and ended.any():
            ours.reset(options={"reset_mask": ended})
            theirs.reset(options={"reset_mask": ended})
        total, ends = total + info["intrinsic_reward"].sum(), ends + ended.sum()
    assert total > 0
    assert ends >= max(ENVS, steps / 100)


@pytest.mark.parametrize("mode", others_slow(MODES, MODES[1:]))
def test_a_step_is_rewarded_for_what_its_action_led_to(mode):
    """Counted by hand: an episode's first view is counted, but no step is rewarded for it."""
    vector = gym_vector("LavaGapS5", 1, autoreset_mode=mode)  # the lava ends many episodes
    envs = cbet_jax.IntrinsicReward(vector, "cbet", coefficient=1.0, settings=WITHOUT_RESETS)
    view, info = envs.reset(seed=0)
    around, states, changes = info.get("panorama", [None])[0], {}, {}

    def count(view, panorama):
        nonlocal around
        change, around = (panorama.astype(int) - around).tobytes(), panorama
        view = view.tobytes()
        states[view], changes[change] = states.get(view, 0) + 1, changes.get(change, 0) + 1
        return 1 / (states[view] + changes[change])

    random, begins, resets = np.random.default_rng(0), False, 0
    for _ in range(200):
        view, _, terminated, truncated, info = envs.step(random.integers(7, size=1))
        ended = bool(terminated[0] | truncated[0])
        if mode == "SameStep" and ended:
            expected = count(info["final_obs"][0], info["final_info"]["panorama"][0])
            count(view[0], info["panorama"][0])
        else:
            expected = count(view[0], info["panorama"][0])
        np.testing.assert_allclose(info["intrinsic_reward"][0], 0.0 if begins else expected)
        begins, resets = ended and mode == "NextStep", resets + ended
    assert resets > 5


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rnd", "ride", "e3b"])
@pytest.mark.parametrize("mode", MODES)
def test_networks_learn_by_themselves(method, mode):
    vector = gym_vector("LavaGapS5", 2, autoreset_mode=mode, arrays="dlpack")
    envs = cbet_jax.IntrinsicReward(vector, method, unroll=16, settings=FAST)
    envs.reset(seed=0)
    random, losses = np.random.default_rng(0), []
    for step in range(1, 321):
        before = envs.metrics
        *_, info = envs.step(random.integers(7, size=2))
        assert np.isfinite(info["intrinsic_reward"]).all()
        assert (envs.metrics is not before) == (step % 16 == 0)
        losses += [envs.metrics["intrinsic_loss"]] if step % 16 == 0 else []
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    assert not vector.panorama  # these methods do not look


def test_a_scale_is_taken_on_at_each_step():
    """Without networks that learn, too."""
    envs = cbet_jax.IntrinsicReward(ours_in("NextStep"), "re3", settings=SMALL)
    envs.reset(seed=0)
    random, weights = np.random.default_rng(0), []
    for _ in range(8):
        envs.step(random.integers(7, size=ENVS))
        weights.append(float(envs.state.params.fixed["distance"].weight))
    np.testing.assert_allclose(weights, range(ENVS, 9 * ENVS, ENVS), atol=1e-3)


def test_counts_that_were_kept_go_on_in_new_environments():
    first = cbet_jax.IntrinsicReward(ours_in("NextStep"), "count", settings=SMALL)
    first.reset(seed=0)
    gains = [float(first.step(np.full(ENVS, 6))[4]["intrinsic_reward"][0]) for _ in range(4)]
    kept = jax.tree.map(np.array, first.state)
    later = cbet_jax.IntrinsicReward(gym_vector(NAME, ENVS), "count", settings=SMALL)
    later.state = kept
    with pytest.raises(gymnasium.error.ResetNeeded):
        later.step(np.full(ENVS, 6))
    later.reset(seed=0)  # which counts the first view of the next episode
    gains.append(float(later.step(np.full(ENVS, 6))[4]["intrinsic_reward"][0]))
    np.testing.assert_allclose(gains, 0.005 / np.sqrt([1, 2, 3, 4, 6]), rtol=1e-5)


@pytest.mark.parametrize(("envs", "method"), [(ENVS, "rnd"), (ENVS + 1, "count")])
def test_counts_of_others_are_refused(envs, method):
    first = cbet_jax.IntrinsicReward(gym_vector(NAME, ENVS), "count", settings=SMALL)
    first.reset(seed=0)
    later = cbet_jax.IntrinsicReward(gym_vector(NAME, envs), method, settings=SMALL)
    later.state = first.state
    with pytest.raises(ValueError, match="of another method, or of other environments"):
        later.reset(seed=0)


def test_a_second_wrapper_looks_around_no_second_time():
    envs = gymnasium.make_vec("MiniGrid-Empty-5x5-v0", 2, "sync")
    for _ in range(2):
        cbet_jax.IntrinsicReward(envs, "cbet", settings=SMALL)
    for env in envs.unwrapped.envs:
        assert isinstance(env, Panorama)
        assert not isinstance(env.env, Panorama)


def test_other_wrappers_work_around_it():
    """Episodes' returns are with the intrinsic reward outside of it, without it inside."""
    inside = RecordEpisodeStatistics(beside(ours_in("NextStep"), "NextStep"), stats_key="task")
    inside.unwrapped.envs[0].vector.reset(seed=0)
    envs = RecordEpisodeStatistics(cbet_jax.IntrinsicReward(inside, "count", settings=SMALL))
    envs.reset(seed=0)
    for _ in range(250):
        *_, info = envs.step(np.zeros(ENVS, int))
    assert info["task"]["r"].tolist() == [0.0] * ENVS
    assert (info["episode"]["r"] > 0).all()
    assert not any(isinstance(env, Panorama) for env in envs.unwrapped.envs)


def test_what_cannot_be_rewarded_is_refused():
    with pytest.raises(TypeError, match="Discrete"):
        cbet_jax.IntrinsicReward(gymnasium.make_vec("Pendulum-v1", 2), "cbet")
    with pytest.raises(TypeError, match="a view must be bytes"):
        cbet_jax.IntrinsicReward(gymnasium.make_vec("CartPole-v1", 2, "sync"), "cbet")
    with pytest.raises(SettingsError, match="did you mean cbet"):
        cbet_jax.IntrinsicReward(gym_vector(NAME, 1), "cbett")
    with pytest.raises(SettingsError, match="unroll must be in 1"):
        cbet_jax.IntrinsicReward(gym_vector(NAME, 1), "cbet", unroll=0)
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset first"):
        cbet_jax.IntrinsicReward(gym_vector(NAME, 1)).step(np.zeros(1, int))


class Line(VectorEnv):
    """Episodes of three steps; views are 7, or the time."""

    def __init__(self, mode="NextStep", still=True, side=1):
        self.metadata = {"autoreset_mode": AutoresetMode(mode)}
        self.num_envs, self.still, self.time = 2, still, 0
        self.single_observation_space = spaces.Box(0, 255, (side, side, 3), np.uint8)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, 2)
        self.action_space = batch_space(self.single_action_space, 2)

    def _views(self):
        return np.full(self.observation_space.shape, 7 if self.still else self.time, np.uint8)

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return self._views(), {}

    def step(self, actions):
        self.time, info = (self.time + 1) % 4, {}
        ended, never = np.full(2, self.time == 3), np.zeros(2, bool)
        if ended.all() and self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP:
            info, self.time = {"final_obs": [*self._views()]}, 0
        return self._views(), np.zeros(2), ended, never, info


def test_a_step_that_only_begins_an_episode_is_paid_nothing_and_ends_its_counts():
    settings = TrainSettings(frames=1000, counts=CountSettings(episodic=True))
    envs = cbet_jax.IntrinsicReward(Line(), "count", coefficient=1.0, settings=settings)
    envs.reset(seed=0)
    rewards = [envs.step(np.zeros(2, int))[1][0] for _ in range(8)]
    np.testing.assert_allclose(rewards, [1, 2**-0.5, 3**-0.5, 0] * 2, rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_a_vectors_own_mode_counts_not_that_of_metadata_which_vectors_share(mode):
    """Before gymnasium 1.4, the vector made last decides the metadata of all."""
    line = Line()
    line.autoreset_mode = AutoresetMode(mode)
    assert autoreset_mode(VectorWrapper(line)) is AutoresetMode(mode)
    assert autoreset_mode(Line("SameStep")) is AutoresetMode.SAME_STEP


@pytest.mark.parametrize(("mode", "steps"), [("NextStep", 4), ("SameStep", 3)])
def test_networks_learn_from_each_step_as_it_was(mode, steps):
    """A step that leads into another episode ends its own."""
    line, batches = Line(mode, still=False, side=7), []
    envs = cbet_jax.IntrinsicReward(line, "rnd", unroll=steps, settings=SMALL)
    envs._learn = lambda state, batch: batches.append(batch) or (state, {})
    envs.reset(seed=0)
    numbers, actions = list(range(steps)), [0, 1, 1, 0][:steps]
    for action in actions * 2:
        envs.step(np.full(2, action))
    assert len(batches) == 2
    for batch in batches:
        before, after = (obs.view[:, 0, 0, 0, 0].tolist() for obs in (batch.obs, batch.next_obs))
        assert (before, after) == (numbers, [*numbers[1:], 0])
        assert batch.action[:, 1].tolist() == actions
        assert batch.done[:, 0].tolist() == [False] * (steps - 1) + [True]


def test_each_step_draws_numbers_of_its_own_by_the_seed():
    """Else tables would be reset at each step, or never."""
    drawn, settings = [], TrainSettings(frames=1000)
    for seed in (0, 1, 0):
        envs = cbet_jax.IntrinsicReward(Line(), "count", seed=seed, settings=settings)

        def reward(memory, state, key, *step):
            drawn.append(jax.random.key_data(key).tolist())
            return state._replace(memory=memory), np.zeros(2)

        envs._reward = reward
        envs.reset()
        for _ in range(3):
            envs.step(np.zeros(2, int))
    assert drawn[6:] == drawn[:3]
    assert len({tuple(key) for key in drawn}) == 6
