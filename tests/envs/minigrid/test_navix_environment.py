"""Our worlds as navix environments."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs.minigrid
from envs.minigrid import rules
from tests.envs.minigrid.solving.planner import plan
from tests.support.families import others_slow

navix = pytest.importorskip("navix")

from flax import linen  # noqa: E402
from navix.agents import PPO, ActorCritic, PPOHparams  # noqa: E402
from navix.agents.models import MLPEncoder  # noqa: E402
from navix.environments.environment import Environment, StepType, Timestep  # noqa: E402

from envs.minigrid.navix_environment import navix_id  # noqa: E402

WORLDS = 8


class Played(NamedTuple):
    env: Environment
    play: Callable  # from a seed to the first timesteps of 8 worlds and those of 40 random steps
    first: Timestep
    later: Timestep


@pytest.fixture(scope="module", params=others_slow(envs.minigrid.NAMES, ()))
def played(request) -> Played:
    env = navix.make(navix_id(request.param), max_steps=15)

    @jax.jit
    def play(key):
        key_reset, key_actions = jax.random.split(key)
        first = jax.vmap(env.reset)(jax.random.split(key_reset, WORLDS))
        actions = jax.random.randint(key_actions, (40, WORLDS), 0, env.action_space.n)

        def step(timesteps, action):
            after = jax.vmap(env.step)(timesteps, action)
            return after, after

        return first, jax.lax.scan(step, first, actions)[1]

    return Played(env, play, *play(jax.random.key(0)))


def test_reset_and_step_keep_navixs_contract(played):
    env, _, first, later = played
    assert isinstance(env, Environment)
    assert (first.t == 0).all()
    assert (first.info["return"] == 0).all()
    assert first.is_start().all()
    assert jax.tree.structure(first) == jax.tree.structure(later)
    for before, after in zip(jax.tree.leaves(first), jax.tree.leaves(later), strict=True):
        assert before.dtype == after.dtype
        assert before.shape == after.shape[1:]


def test_observations_actions_and_rewards_lie_in_their_spaces(played):
    env, _, first, later = played
    assert env.action_space.n == 7
    for timesteps in (first, later):
        view, space = timesteps.observation, env.observation_space
        assert view.dtype == space.dtype == jnp.uint8
        assert view.shape[-3:] == space.shape == (7, 7, 3)
        assert int(view.max()) <= int(space.maximum)
        assert float(timesteps.reward.min()) >= float(env.reward_space.minimum)
        assert float(timesteps.reward.max()) <= float(env.reward_space.maximum)


def test_an_episode_ends_at_the_time_limit_and_restarts_one_call_later(played):
    _, _, first, later = played
    times = np.concatenate([first.t[None], later.t])
    kinds = np.concatenate([first.step_type[None], later.step_type])
    for world in range(WORLDS):
        ended = np.flatnonzero(kinds[:-1, world] != StepType.TRANSITION)
        assert len(ended) >= 2
        assert (times[ended + 1, world] == 0).all()
    truncated = kinds == StepType.TRUNCATION
    assert truncated.any()
    assert (times[truncated] == 15).all()


def test_the_same_key_plays_the_same_episodes(played):
    again, other = played.play(jax.random.key(0)), played.play(jax.random.key(1))
    same = jax.tree.map(lambda a, b: bool((a == b).all()), (played.first, played.later), again)
    assert jax.tree.all(same)
    assert not same_levels(played.first, other[0])
    assert played.play._cache_size() == 1  # one trace for all keys


def same_levels(some: Timestep, others: Timestep) -> bool:
    ours, theirs = some.state.world.level, others.state.world.level
    return jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), ours, theirs))


@pytest.mark.slow
@pytest.mark.parametrize("explore", [False, True])
def test_success_ends_an_episode_unless_one_explores(explore):
    env = envs.minigrid.make("KeyCorridorS3R3", explore=explore)
    timestep = jax.jit(env.reset)(jax.random.key(0))
    step = jax.jit(env.step)
    actions = plan(envs.minigrid.export(timestep.state))
    for action in actions:
        assert timestep.is_transition()
        timestep = step(timestep, jnp.int32(action))
    assert timestep.reward == pytest.approx(1 - 0.9 * len(actions) / 270)
    assert bool(timestep.is_termination()) == (not explore)
    timestep = step(timestep, jnp.int32(rules.PICKUP))
    assert timestep.reward == 0
    assert bool(timestep.is_start()) == (not explore)


def test_an_unknown_name_is_one_line_with_the_nearest_names():
    with pytest.raises(envs.minigrid.UnknownEnvironment, match="KeyCorridorS3R3") as error:
        envs.minigrid.make("keycorridor-s3r3")
    assert "\n" not in str(error.value)


def test_every_environment_is_registered_with_navix():
    assert {navix_id(name) for name in envs.minigrid.NAMES} <= set(navix.registry())


@pytest.mark.slow
def test_navixs_own_agent_trains_on_it():
    class Encoder(MLPEncoder):
        @linen.compact
        def __call__(self, carry, x, is_first):
            return super().__call__(carry, x.reshape(-1) / 10, is_first)

    env = envs.minigrid.make("KeyCorridorS3R3")
    settings = PPOHparams(budget=3 * 4 * 16, num_envs=4, num_steps=16, num_minibatches=2)
    network = ActorCritic(7, actor_encoder=Encoder(16), critic_encoder=Encoder(16))
    agent = PPO(hparams=settings, network=network, env=env)
    state, logs = jax.jit(agent.train)(jax.random.PRNGKey(0))
    assert int(state.frames) == 3 * 4 * 16
    assert np.isfinite(logs["agent/diagnostics/total_loss"]).all()
    assert (np.diff(logs["agent/train/updates"]) > 0).all()


def test_reset_and_step_are_compiled_once():
    env = envs.minigrid.make("LavaGapS5")
    traces = []
    env = env.replace(observation_fn=lambda state: traces.append(1) or jnp.zeros(()))
    timestep = env.reset(jax.random.key(0))
    timestep = env.step(timestep, 1)
    before = len(traces)
    for action in (2, np.int64(0), jnp.int32(1)):
        timestep = env.step(timestep, action)
    assert len(traces) == before
    assert int(timestep.t) == 4


def test_a_state_is_drawn(played):
    state = jax.tree.map(lambda leaf: leaf[0], played.first.state)
    width, height = state.world.level.size.tolist()
    picture = envs.minigrid.rgb(state, tile_size=8)
    assert picture.shape == (height * 8, width * 8, 3)
    assert picture.dtype == np.uint8


def test_the_time_limit_asked_for_holds_and_exploration_goes_on_after_success():
    env = envs.minigrid.make("LavaGapS5", explore=True, max_steps=7)
    timestep = env.reset(jax.random.key(0))
    world = timestep.state.world
    before_goal = {"agent_position": jnp.array([2, 3]), "agent_direction": jnp.int32(0)}
    world = world._replace(level=world.level._replace(**before_goal))
    timestep = timestep.replace(state=timestep.state.replace(world=world))
    after = env.step(timestep, rules.FORWARD)
    assert after.state.outcome.success
    assert after.reward == pytest.approx(1 - 0.9 / 7)
    assert after.is_transition()
