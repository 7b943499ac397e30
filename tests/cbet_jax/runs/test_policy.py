"""Policies as objects: what one computes and refuses, and one that is trained in Python."""

import inspect
from dataclasses import replace
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest

import cbet_jax
from cbet_jax.agent import make_agent
from cbet_jax.config import RunSettings, TransferSettings
from cbet_jax.networks.policy_network import sample_actions
from cbet_jax.program import make_program, seed_keys
from cbet_jax.runs import checkpoint, pretrained, task_record
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from cbet_jax.runs.policy import NonFiniteLossError
from cbet_jax.settings.ranges import SettingsError
from envs import make_world
from tests.support import tiny
from tests.support.damage import cut
from tests.support.own_method import own_method
from tests.support.tiny import CHUNK, LEARNING, LEARNING_CHUNK_FRAMES
from tests.support.worlds import corridor

VIEW, ACTIONS, AGENTS = (7, 7, 3), 7, 3
WORLD = corridor(LEARNING.worlds)
SETTINGS = RunSettings(tiny.SETTINGS, ("Unlock",), tiny.SEEDS)
TRANSFER = replace(
    SETTINGS, transfer=TransferSettings(run="before", frames=0, network=tiny.NETWORK, alpha=0.5)
)


def saved(root: Path, settings: RunSettings):
    """Save parameters of a run at two moments; return its directory, its agent and the first."""
    directory = RunDirectory(root)
    directory.create(settings)
    agent = make_agent(settings.train.network, settings.transfer, ACTIONS, VIEW)
    shapes = jax.eval_shape(jax.vmap(agent.init), seed_keys(settings.seeds))
    random = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: random.normal(0, 0.1, leaf.shape).astype("f4"), shapes)
    state = {"learner": {"policy": params.learnt, "fixed": params.fixed}}
    for frames in (40, 80):
        checkpoint.save(directory.checkpoints, state, Position(frames // 40, frames))
        state = jax.tree.map(lambda leaf: leaf + 1, state)
    return directory, agent, params


@pytest.mark.parametrize("settings", [SETTINGS, TRANSFER], ids=["one network", "transfer"])
def test_a_policy_computes_what_its_agent_does(settings, tmp_path):
    directory, agent, params = saved(tmp_path / "run", settings)
    policy = cbet_jax.load(str(directory.root), seed_index=1, frames=40)
    assert policy.frames == 40
    own = jax.tree.map(lambda leaf: leaf[1], params)
    jax.tree.map(np.testing.assert_array_equal, policy.params, own)
    views = np.random.default_rng(1).integers(0, 6, (2, AGENTS, *VIEW)).astype(np.uint8)
    first = np.array([[True] * AGENTS, [False, True, False]])
    logits, values, last, _ = jax.jit(agent.apply)(own, views, first, agent.initial_state(AGENTS))
    state = policy.initial_state(AGENTS)
    for moment, (view, begins) in enumerate(zip(views, first, strict=True)):
        found, value, after = policy.outputs(view, state, begins)
        np.testing.assert_allclose(found, logits[moment], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(value, values[moment], rtol=1e-5, atol=1e-6)
        action, state = policy(view, state, jax.random.key(moment), begins)
        assert action.shape == (AGENTS,)
        np.testing.assert_array_equal(action, sample_actions(jax.random.key(moment), found))
        jax.tree.map(np.testing.assert_array_equal, state, after)
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)  # noqa: E731
    jax.tree.map(close, state, last)


def test_one_agent_needs_no_axis(tmp_path):
    directory, *_ = saved(tmp_path / "run", SETTINGS)
    policy = cbet_jax.load(directory.root)
    assert policy.frames == 80  # the newest
    view = np.full(VIEW, 3, np.uint8)
    action, state = policy(view, policy.initial_state(1), jax.random.key(0))
    logits, value, _ = policy.outputs(view[None], policy.initial_state(1))
    assert (action.shape, logits.shape, value.shape) == ((), (1, ACTIONS), (1,))
    assert 0 <= int(action) < ACTIONS
    again, _ = policy(view, state, jax.random.key(1), first=True)
    assert int(again) == int(policy(view, policy.initial_state(1), jax.random.key(1))[0])


def test_the_best_policy_of_a_seed_is_of_its_own_frames(tmp_path):
    directory, *_ = saved(tmp_path / "run", SETTINGS)
    arrays, _ = checkpoint.read_arrays(checkpoint.checkpoints(directory.checkpoints)[-1])
    arrays[task_record.FRAMES] = np.array([40, 80])
    checkpoint.save(directory.best, arrays, Position(0, 80))
    assert [cbet_jax.load(directory.root, seed).frames for seed in (0, 1)] == [40, 80]
    pretrained.pack(directory, 0, tmp_path / "packed.npz")
    assert checkpoint.read_file(tmp_path / "packed.npz")[1]["frames"] == 40


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    directory, *_ = saved(tmp_path / "run", SETTINGS)
    newest = checkpoint.checkpoints(directory.checkpoints)[-1]
    cut(newest)
    assert cbet_jax.load(directory.root).frames == 40
    with pytest.raises(RunDirectoryError, match=r"80.* is damaged"):
        cbet_jax.load(directory.root, frames=80)


def test_what_cannot_be_loaded_is_refused(tmp_path):
    with pytest.raises(RunDirectoryError):
        cbet_jax.load(tmp_path / "nothing")
    with pytest.raises(RunDirectoryError, match="unknown policy"):
        cbet_jax.load("pretrained/nobody")
    directory, *_ = saved(tmp_path / "run", SETTINGS)
    with pytest.raises(SettingsError, match="seed_index must be in"):
        cbet_jax.load(directory.root, 2)
    policy = cbet_jax.load(directory.root)
    with pytest.raises(ValueError, match="height x width x 3, or N of them, not 7x7"):
        policy(np.zeros((7, 7), np.uint8), policy.initial_state(1), jax.random.key(0))
    unchecked = inspect.unwrap(type(policy).outputs)  # only tests check the types
    for wrong, named in (({"image": np.zeros(VIEW, np.uint8)}, "dict"), ([[[0, 0, 0]]], "list")):
        with pytest.raises(ValueError, match=f"or N of them, not {named}"):
            unchecked(policy, wrong, policy.initial_state(1))
    with pytest.raises(ValueError, match="a view is of uint8, not float32"):
        unchecked(policy, np.zeros(VIEW, np.float32), policy.initial_state(1))
    for state in (policy.initial_state(1), None):
        with pytest.raises(ValueError, match=r"not of 4 agents, as of initial_state\(4\)"):
            unchecked(policy, np.zeros((4, *VIEW), np.uint8), state)
    right = policy.initial_state(1)
    for state in (tuple(right), jax.tree.map(lambda leaf: leaf[..., :-1], right)):
        with pytest.raises(ValueError, match=r"not of 1 agents, as of initial_state\(1\)"):
            unchecked(policy, np.zeros(VIEW, np.uint8), state)
    with pytest.raises(ValueError, match="not 0x7x7x3"):
        policy(np.zeros((0, *VIEW), np.uint8), policy.initial_state(0), jax.random.key(0))
    with pytest.raises(ValueError, match="other views than 20x20x3"):
        policy(np.zeros((20, 20, 3), np.uint8), policy.initial_state(1), jax.random.key(0))


def test_a_policy_of_the_package_is_loaded_and_nothing_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (name, *_) = pretrained.names()
    policy = cbet_jax.load(name)
    assert policy.frames == policy.settings.train.frames
    action, _ = policy(np.zeros(VIEW, np.uint8), policy.initial_state(1), jax.random.key(0))
    assert 0 <= int(action) < ACTIONS
    assert list(tmp_path.iterdir()) == []


@cache
def _program(settings, world, seeds, chunk):
    return make_program(settings, world, seeds, chunk)


def _train(settings=LEARNING, world=WORLD, **options):
    """Train; programs of equal settings are compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        build = lambda *built, agent: _program(*built)  # noqa: E731
        patch.setattr("cbet_jax.runs.policy.make_program", build)
        return cbet_jax.train_policy(settings, world, chunk=CHUNK, **options)


def test_the_policy_is_what_the_program_learns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    called = []
    policy = _train(on_chunk=lambda *given: called.append(given), seed=1)
    assert not list(Path().iterdir())
    assert [frames for frames, _ in called] == [LEARNING_CHUNK_FRAMES * n for n in (1, 2, 3)]
    assert policy.frames == LEARNING.frames
    assert policy.settings.environments == ("corridor",)
    assert policy.settings.stage == "tabula rasa"  # it has learnt the task

    program = _program(LEARNING, WORLD, 1, CHUNK)
    state = program.init(seed_keys(1, 1))
    for _, found in called:
        state, metrics = program.advance(state)
        assert found.keys() == metrics.keys()
        np.testing.assert_allclose(found["policy_loss"], np.mean(metrics["policy_loss"]), rtol=1e-5)
        assert np.isnan(found["first_bad_update"])
    learnt = jax.tree.map(lambda leaf: leaf[0], state.learner.agent)
    jax.tree.map(np.testing.assert_array_equal, policy.params, learnt)

    view = np.zeros((4, 7, 7, 3), np.uint8)
    unchecked = inspect.unwrap(type(policy).__call__)  # only tests check the types
    action, after = unchecked(policy, view, policy.initial_state(4), jax.random.key(0), [True] * 4)
    assert action.shape == (4,)
    assert after.hidden.shape == policy.initial_state(4).hidden.shape
    played = policy.evaluate(corridor(3), jax.random.key(0))
    np.testing.assert_array_equal(played.actions.sum(-1), played.length)
    assert played.length.shape == (3,)
    assert played.length.max() <= WORLD.max_steps
    assert repr(policy) == f"Policy(cbet in corridor, {policy.frames} frames)"
    both = make_world(["Unlock", "LavaGapS5"], 3, explore=False)
    with pytest.raises(ValueError, match="make a world for each of Unlock, LavaGapS5"):
        policy.evaluate(both, jax.random.key(0))
    with pytest.raises(ValueError, match="other views than 9x9x3"):
        policy.evaluate(make_world(["Unlock"], 3, explore=False, view_size=9), jax.random.key(0))


def test_a_world_is_compiled_for_its_first_evaluation_only():
    policy = cbet_jax.train_policy(LEARNING, WORLD, chunk=CHUNK)
    world, traced = corridor(3), []

    def init(key):
        traced.append(key)
        return world.init(key)

    counted = replace(world, init=init)
    first = policy.evaluate(counted, jax.random.key(0))
    times = len(traced)
    again = policy.evaluate(counted, jax.random.key(0))
    assert len(traced) == times > 0
    jax.tree.map(np.testing.assert_array_equal, first, again)


def test_it_stops_when_told_to():
    assert _train(on_chunk=lambda frames, metrics: True).frames == LEARNING_CHUNK_FRAMES


# A reward of one for each step of the first two chunks, then what no loss can be computed of.
FINITE_STEPS = 2 * LEARNING_CHUNK_FRAMES // LEARNING.worlds
ONES = f"""
    import jax.numpy as jnp

    from cbet_jax.intrinsic.interface import Intrinsic, Params, each_step


    def begin(key, step):
        return Params({{}}, {{}}), jnp.zeros(step.view.shape[0])


    def observe(params, played, key, experience):
        return played + 1, jnp.where(played < {FINITE_STEPS}, 1.0, jnp.nan)


    def make(settings, num_actions):
        reward = lambda params, played: played.signal
        return Intrinsic("ones", 1.0, reward, begin, observe=each_step(observe))
"""


@pytest.mark.slow
def test_a_method_of_ones_own_is_named_by_its_file_and_bad_losses_stop_it(tmp_path):
    rewards = []
    with own_method(tmp_path, ONES) as path:
        settings = replace(LEARNING, method=f"{path}:make")
        with pytest.raises(NonFiniteLossError, match=f"finite number by frame {LEARNING.frames}"):
            _train(settings, on_chunk=lambda _, found: rewards.append(found["intrinsic_reward"]))
    assert rewards == [1.0] * 2


def test_what_cannot_be_trained_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="ask for 6 worlds, not 3"):
        _train(world=corridor(3))
    with pytest.raises(SettingsError, match="unknown method"):
        _train(replace(LEARNING, method="cebt"))
    refusal = pytest.raises(SettingsError, match="of steps and actors, not float32")
    with own_method(tmp_path, ONES.replace("played.signal", "played.signal[0]")) as path, refusal:
        _train(replace(LEARNING, method=f"{path}:make"))
