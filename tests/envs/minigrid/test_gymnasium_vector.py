"""`gym_vector`: gymnasium's contract, and every step beside the `minigrid` package."""

from functools import cache

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import envs.minigrid
from envs.minigrid import rules
from envs.minigrid.generators.text_levels import text_levels
from envs.minigrid.gymnasium_vector import GridworldVectorEnv
from tests.envs.minigrid.solving.planner import plan
from tests.support import minigrid_reference
from tests.support.families import others_slow
from tests.support.minigrid_reference import look, rebuild

NAME, ENVS, STEPS = "DoorKey-5x5", 4, 320
MODES = ("NextStep", "SameStep")


@cache
def made(mode, arrays="numpy"):
    return envs.minigrid.gym_vector(
        NAME, ENVS, autoreset_mode=mode, panorama=True, render_mode="rgb_array", arrays=arrays
    )


def exports(vector):
    states = jax.device_get(vector.states)
    one = lambda index: jax.tree.map(lambda leaf: leaf[index], states)  # noqa: E731
    return [envs.minigrid.export(one(index)) for index in range(vector.num_envs)]


class Beside:
    """MiniGrid's own environments, put into the same levels as ours."""

    def __init__(self, vector):
        self.vector = vector
        self.envs = [minigrid_reference.make(NAME) for _ in range(vector.num_envs)]
        self.met = [set() for _ in self.envs]
        self.plans = [[] for _ in self.envs]
        self.begin(np.ones(len(self.envs), bool))

    def begin(self, which):
        """Take the levels that ours have begun; the first environment will solve its own."""
        given = exports(self.vector) if which.any() else []
        for index in np.flatnonzero(which):
            rebuild(given[index], self.envs[index])
            self.met[index] = set()
        if which[0]:
            self.plans[0] = list(plan(given[0]))

    def act(self, index, random):
        return self.plans[index].pop(0) if self.plans[index] else random

    def step(self, index, action):
        env = self.envs[index]
        before = self._whole(env)
        observation, reward, terminated, truncated, _ = env.step(action)
        after = self._whole(env)
        if before[:2] != after[:2]:
            self.met[index].add((before, after))
        return observation["image"], reward, terminated, truncated

    @staticmethod
    def _whole(env):
        carried = env.carrying.encode() if env.carrying else None
        return env.grid.encode().tobytes(), carried, tuple(env.agent_pos), env.agent_dir


@pytest.mark.parametrize("mode", others_slow(MODES, MODES[1:]))
def test_every_step_is_minigrids(mode):
    """Views, rewards, ends, successes and interactions, across automatic resets."""
    vector = made(mode)
    seen = RecordEpisodeStatistics(vector)
    view, info = seen.reset(seed=5)
    theirs = Beside(vector)
    assert not info["success"].any()
    random = np.random.default_rng(0)
    resets = np.zeros(ENVS, bool)
    lengths, returns = np.zeros(ENVS, int), np.zeros(ENVS)
    finished, successes = 0, 0
    for _ in range(STEPS):
        actions = random.choice(7, ENVS, p=[0.2, 0.2, 0.3, 0.1, 0.05, 0.1, 0.05])
        actions = np.array([theirs.act(i, action) for i, action in enumerate(actions)])
        view, reward, terminated, truncated, info = seen.step(actions)
        expected = [theirs.step(i, actions[i]) for i in np.flatnonzero(~resets)]
        begun = np.flatnonzero(resets)
        theirs.begin(resets)
        for index in begun:
            assert (reward[index], terminated[index], truncated[index]) == (0, False, False)
            np.testing.assert_array_equal(view[index], theirs.envs[index].gen_obs()["image"])
        ended = terminated | truncated
        for index, (image, gain, won, late) in zip(np.flatnonzero(~resets), expected, strict=True):
            last = mode == "SameStep" and ended[index]
            told = info["final_info"] if last else info
            np.testing.assert_array_equal(info["final_obs"][index] if last else view[index], image)
            assert reward[index] == pytest.approx(gain, abs=1e-6)
            assert (terminated[index], truncated[index]) == (won, late)
            assert told["success"][index] == won
            assert told["interactions"][index] == len(theirs.met[index])
        if mode == "SameStep":
            theirs.begin(ended)
            for index in np.flatnonzero(ended):
                np.testing.assert_array_equal(view[index], theirs.envs[index].gen_obs()["image"])
        for index in range(0, ENVS, 3):
            around = look(theirs.envs[index], theirs.envs[index].gen_obs()["image"]).panorama
            if mode == "SameStep" or not ended[index]:
                np.testing.assert_array_equal(info["panorama"][index], around)
        lengths = (lengths + 1) * ~resets
        returns = returns * ~resets + reward
        assert ("episode" in info) == ended.any()
        if ended.any():
            np.testing.assert_array_equal(info["_episode"], ended)
            np.testing.assert_array_equal(info["episode"]["l"], lengths * ended)
            np.testing.assert_allclose(info["episode"]["r"], returns * ended, atol=1e-6)
        if mode == "SameStep":
            lengths, returns = lengths * ~ended, returns * ~ended
        resets = ended if mode == "NextStep" else np.zeros(ENVS, bool)
        finished += ended.sum()
        successes += terminated.sum()
    assert finished > successes > 2


@pytest.mark.parametrize("mode", MODES)
def test_success_in_the_last_step_is_also_a_truncation(mode):
    """As in MiniGrid: the agent waits, and solves the level just in time."""
    vector = made(mode)
    vector.reset(seed=0)
    given, theirs = exports(vector)[0], minigrid_reference.make(NAME)
    rebuild(given, theirs)
    solution = list(plan(given))
    for action in [rules.DONE] * (given.max_steps - len(solution)) + solution:
        _, reward, terminated, truncated, _ = vector.step(np.full(ENVS, action))
        _, gain, won, late, _ = theirs.step(action)
    assert (terminated[0], truncated[0]) == (won, late) == (True, True)
    assert reward[0] == pytest.approx(gain) == pytest.approx(0.1)


class Alone(gymnasium.Env):
    """The first environment of a batch, as gymnasium's checker of single environments takes it."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012

    def __init__(self, vector):
        self.vector, self.render_mode = vector, "rgb_array"
        self.observation_space = vector.single_observation_space
        self.action_space = vector.single_action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        view, info = self.vector.reset(seed=seed, options=options)
        return view[0], {"success": info["success"][0]}

    def step(self, action):
        actions = np.full(self.vector.num_envs, action)
        view, reward, terminated, truncated, info = self.vector.step(actions)
        first = (values[0].item() for values in (reward, terminated, truncated))
        return view[0], *first, {"success": info["success"][0]}

    def render(self):
        return self.vector.render()[0]


@pytest.mark.filterwarnings("ignore:.*spec:UserWarning")
def test_gymnasiums_checker_has_nothing_to_say():
    check_env(Alone(made("NextStep")))


def test_states_outlive_the_next_step():
    vector = made("NextStep")
    vector.reset(seed=2)
    kept = vector.states
    before = kept.level.agent_direction.tolist()
    vector.step(np.full(ENVS, rules.LEFT))
    assert kept.level.agent_direction.tolist() == before
    assert vector.states.level.agent_direction.tolist() == [(each - 1) % 4 for each in before]


def test_a_batch_fits_its_spaces():
    vector = made("NextStep")
    assert vector.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    view, info = vector.reset(seed=1)
    assert view in vector.observation_space
    assert vector.observation_space.shape == (ENVS, 7, 7, 3)
    vector.action_space.seed(0)
    view, reward, terminated, truncated, info = vector.step(vector.action_space.sample())
    assert view in vector.observation_space
    assert reward.dtype == np.float64
    assert terminated.dtype == truncated.dtype == bool
    assert {name for name in info if f"_{name}" in info} == {"success", "interactions", "panorama"}
    view[:] = 0  # it is the caller's own
    assert len(vector.render()) == ENVS
    assert vector.render()[0].shape == (160, 160, 3)


@pytest.mark.parametrize("mode", MODES)
def test_a_seed_gives_the_same_levels_across_refills(mode):
    """With three levels taken at every other call, the pool of 16 is filled several times."""
    vector = made(mode)

    def play(seed):
        views = [vector.reset(seed=seed)[0]]
        for _ in range(12):
            views.append(
                vector.reset(options={"reset_mask": np.array([True, False, True, True])})[0]
            )
            views.append(vector.step(np.zeros(ENVS, int))[0])
        return np.stack(views)

    first = play(3)
    np.testing.assert_array_equal(first, play(3))
    assert (first != play(4)).any()
    assert len({view.tobytes() for view in first[1::2, 0]}) > 6  # fresh levels
    assert float(first[1::2, 1].std(axis=0).max()) > 0  # the one that was never reset turns


def test_without_resets_the_caller_resets():
    vector = made("Disabled", "dlpack")
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset first"):
        vector.step(np.zeros(ENVS, int))
    vector.reset(seed=0)
    turns = np.full(ENVS, rules.LEFT)
    for _ in range(250):
        _, _, terminated, truncated, _ = vector.step(turns)
    assert truncated.all()
    assert not terminated.any()
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset_mask"):
        vector.step(turns)
    vector.reset(options={"reset_mask": np.array([True, False, True, True])})
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset_mask"):
        vector.step(turns)
    vector.reset(options={"reset_mask": np.array([False, True, False, False])})
    *_, truncated, _ = vector.step(turns)
    assert not truncated.any()


def test_pictures_can_stay_on_the_device():
    """DLPack shares them with other libraries without a copy."""
    on_host, on_device = made("NextStep"), made("Disabled", "dlpack")
    turns = np.full(ENVS, rules.LEFT)
    for vector in (on_host, on_device):
        vector.reset(seed=5)
    view, *_, info = on_device.step(turns)
    expected, reward, *_, expected_info = on_host.step(turns)
    for array, same in ((view, expected), (info["panorama"], expected_info["panorama"])):
        shared = np.from_dlpack(array)
        assert shared.ctypes.data == array.unsafe_buffer_pointer()
        np.testing.assert_array_equal(shared, same)
    on_device.step(turns)
    np.testing.assert_array_equal(view, expected)  # the next step leaves them as they are
    assert type(reward) is type(info["success"]) is np.ndarray


def test_what_cannot_be_is_refused():
    vector = made("NextStep")
    vector.reset(seed=0)
    for actions in (np.zeros(ENVS + 1, int), np.zeros(ENVS), np.full(ENVS, 7)):
        with pytest.raises(ValueError, match="actions must be"):
            vector.step(actions)
    with pytest.raises(ValueError, match="reset_mask must be"):
        vector.reset(options={"reset_mask": np.zeros(ENVS, bool)})
    with pytest.raises(ValueError, match="no reset_mask"):
        vector.reset(seed=0, options={"reset_mask": np.ones(ENVS, bool)})
    with pytest.raises(ValueError, match="not a valid AutoresetMode"):
        envs.minigrid.gym_vector(NAME, 1, autoreset_mode="Never")
    with pytest.raises(ValueError, match="at least 1"):
        envs.minigrid.gym_vector(NAME, 0)
    with pytest.raises(ValueError, match="one of numpy, dlpack, not 'torch'"):
        envs.minigrid.gym_vector(NAME, 1, arrays="torch")
    with pytest.raises(ValueError, match="render_mode"):
        envs.minigrid.gym_vector(NAME, 1, render_mode="human")


def test_an_episode_begins_without_what_the_last_one_did():
    vector = made("NextStep")
    vector.reset(seed=0)
    for action in plan(exports(vector)[0]):
        *_, info = vector.step(np.full(ENVS, action))
    assert info["success"][0]
    assert info["interactions"][0] > 0
    *_, info = vector.step(np.full(ENVS, rules.LEFT))
    assert not info["success"][0]
    assert info["interactions"][0] == 0


def test_environments_that_are_not_reset_keep_what_they_did():
    vector = made("NextStep")
    vector.reset(seed=0)
    for action in plan(exports(vector)[0])[:-1]:
        *_, info = vector.step(np.full(ENVS, action))
    assert info["interactions"][0] > 0
    _, after = vector.reset(options={"reset_mask": np.arange(ENVS) > 0})
    assert after["interactions"].tolist() == [info["interactions"][0], 0, 0, 0]


def test_while_exploring_a_success_ends_no_episode():
    corridor = text_levels("corridor", ["WGWGWGWG\nWG>>GGWG\nWGWGWGWG"])
    options = dict(panorama=False, render_mode=None, arrays="numpy")
    vector = GridworldVectorEnv(corridor, 1, explore=True, autoreset_mode="NextStep", **options)
    vector.reset(seed=0)
    _, reward, terminated, truncated, info = vector.step(np.array([rules.FORWARD]))
    assert reward[0] > 0
    assert info["success"][0]
    assert not np.any([terminated, truncated])
