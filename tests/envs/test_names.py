"""MiniGrid's names mean what they mean there, wherever a name is taken."""

import warnings
from functools import partial

import gymnasium
import jax
import jax.numpy as jnp
import minigrid  # noqa: F401  (registers its environments)
import numpy as np
import pytest

import envs.minigrid
from envs import UnknownEnvironment
from envs.minigrid.generators import find
from envs.names import NAMES, our_name
from experiments.common import cli
from experiments.reward_maps import RewardMapOptions
from tests.support.families import slow

THEIRS = sorted(
    name.removeprefix("cbet_jax/") for name in gymnasium.registry if "cbet_jax/" in name
)


@pytest.mark.parametrize(
    ("given", "expected"),
    {
        "MiniGrid-KeyCorridorS3R3-v0": "KeyCorridorS3R3",
        "MiniGrid-ObstructedMaze-2Q-v0": "ObstructedMaze-2Q",
        "MiniGrid-ObstructedMaze-2Q-v1": "ObstructedMaze-2Q-v1",
        "MiniGrid-MultiRoom-N4-S5-v0": "MultiRoom-N6-S5",
        "MiniGrid-MultiRoom-N4-S5-v1": "MultiRoom-N4-S5",
        "Navix-FourRooms-v0": "Navix-FourRooms-v0",
        "MiniGrid-Unlock-v0?max_steps=50": "Unlock?max_steps=50",
        "KeyCorridorS3R3": "KeyCorridorS3R3",
    }.items(),
)
def test_a_name_of_minigrid_is_one_of_ours(given, expected):
    assert our_name(given) == expected


def test_versions_that_minigrid_does_not_have_are_refused():
    with pytest.raises(UnknownEnvironment, match="did you mean KeyCorridorS3R3"):
        find("MiniGrid-KeyCorridorS3R3-v1")


def test_their_grids_and_time_limits_are_the_same():
    compared = 0
    for name in THEIRS:
        if f"MiniGrid-{name}" in gymnasium.registry:
            with warnings.catch_warnings(action="ignore"):  # that there is a v1 of some
                env = gymnasium.make(f"MiniGrid-{name}", disable_env_checker=True).unwrapped
            ours = find(f"MiniGrid-{name}")
            theirs = env.width, env.height, env.max_steps
            assert (ours.width, ours.height, ours.max_steps) == theirs, name
            compared += 1
    assert compared > len(NAMES) - 5


def test_gymnasium_makes_them():
    options = {"autoreset_mode": "SameStep", "render_mode": "rgb_array"}
    vector = gymnasium.make_vec("cbet_jax/MultiRoom-N4-S5-v1", num_envs=2, **options)
    assert vector.observation_space.shape == (2, 7, 7, 3)
    assert "MultiRoom-N4-S5" in repr(vector)
    assert vector.spec.id == "cbet_jax/MultiRoom-N4-S5-v1"


def test_every_interface_takes_them():
    name = "MiniGrid-LavaGapS5-v0"
    assert envs.minigrid.make_world([name], 1, explore=True).environments == ("LavaGapS5",)
    assert envs.minigrid.gymnax_env(name).name == "LavaGapS5"


@pytest.mark.parametrize("words", [("--env", "{}"), ("--env={}",)])
def test_commands_take_them(words):
    arguments = [word.format("MiniGrid-Unlock-v0") for word in words]
    options = cli.parse(RewardMapOptions, [*arguments, "--out", "MiniGrid-Unlock-v0"])
    assert (options.env, str(options.out)) == ("Unlock", "MiniGrid-Unlock-v0")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("Unlock?max_steps=0", "max_steps=N, with N in 1..9999999"),
        ("Unlock?max_steps=10000000", "max_steps=N, with N in 1..9999999"),
        ("Unlock?steps=5", "max_steps=N, with N in 1..9999999"),
        ("Unlok?max_steps=5", "did you mean Unlock"),
        ("MiniGrid-Fetch-5x5-N2-v0", "in words.*picking up another object ends the episode"),
        ("GoToDoor-5x5", "mission is in words"),
        ("MiniGrid-Empty-5x5-v0", "Navix-Empty"),
        ("MiniGrid-FourRooms-v0", "FourRooms: it is navix's"),
        ("MiniGrid-LockedRoom-v0", "LockedRoom: it is navix's"),
        ("DistShift1", "it is navix's"),
        ("MiniGrid-MemoryS17Random-v0", "to recall what the agent saw"),
        ("RedBlueDoors-6x6", "two doors in order"),
        ("MiniGrid-PutNear-6x6-N2-v0", "mission is in words"),
        ("MiniGrid-Dynamic-Obstacles-Random-5x5-v0", "balls move by themselves"),
    ],
)
def test_what_is_not_played_is_refused_in_a_line(name, line):
    with pytest.raises(UnknownEnvironment, match=line) as refused:
        find(name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "make",
    [
        partial(envs.minigrid.gym_vector, "MiniGrid-LavaGapS5-v0?max_steps=7"),
        slow(partial(gymnasium.make_vec, "cbet_jax/LavaGapS5-v0", max_steps=7)),
    ],
)
def test_a_time_limit_holds_in_every_episode(make):
    vector = make(num_envs=2)
    vector.reset(seed=0)
    truncated = [vector.step(np.zeros(2, int))[3].all() for _ in range(16)]
    assert np.flatnonzero(truncated).tolist() == [6, 14]  # the step between begins an episode


@pytest.mark.slow
def test_a_time_limit_holds_with_gymnaxs_interface():
    environment = envs.minigrid.gymnax_env("LavaGapS5", max_steps=7)
    _, state = jax.jit(environment.reset)(jax.random.key(0))
    assert (environment.default_params.max_steps_in_episode, state.level.max_steps) == (7, 7)
    late = state._replace(step_count=jnp.int32(6))
    found = jax.jit(environment.step)(jax.random.key(1), late, 0)
    assert found[-1]["truncated"]
