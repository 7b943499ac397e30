"""Training in Python: the policy is the one that the program has learnt, and nothing is written."""

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import cbet_jax
from cbet_jax.config import SettingsError
from cbet_jax.program import make_program, seed_keys
from cbet_jax.runs.train_loop import NonFiniteLossError
from tests.support.own_method import own_method
from tests.support.tiny import CHUNK
from tests.support.tiny import LEARNING as SETTINGS
from tests.support.tiny import LEARNING_CHUNK_FRAMES as CHUNK_FRAMES
from tests.support.worlds import corridor


def _train(settings=SETTINGS, world=None, **options):
    world = world or corridor(SETTINGS.worlds)
    return cbet_jax.train_policy(settings, world, chunk=CHUNK, **options)


def test_the_policy_is_what_the_program_learns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    called = []
    policy = _train(on_chunk=lambda *given: called.append(given), seed=1)
    assert not list(Path().iterdir())
    assert [frames for frames, _ in called] == [CHUNK_FRAMES * n for n in (1, 2, 3)]
    assert policy.frames == SETTINGS.frames
    assert policy.settings.environments == ("corridor",)

    program = make_program(SETTINGS, corridor(SETTINGS.worlds), 1, CHUNK)
    state = program.init(seed_keys(1, 1))
    for _, found in called:
        state, metrics = program.advance(state)
        assert found.keys() == metrics.keys()
        np.testing.assert_allclose(found["policy_loss"], np.mean(metrics["policy_loss"]), rtol=1e-5)
        assert np.isnan(found["first_bad_update"])
    learnt = jax.tree.map(lambda leaf: leaf[0], state.learner.agent)
    jax.tree.map(np.testing.assert_array_equal, policy.params, learnt)

    view = np.zeros((4, 7, 7, 3), np.uint8)
    action, after = policy(view, policy.initial_state(4), jax.random.key(0))
    assert action.shape == (4,)
    assert after.hidden.shape == policy.initial_state(4).hidden.shape


def test_it_stops_when_told_to():
    assert _train(on_chunk=lambda frames, metrics: True).frames == CHUNK_FRAMES


# A reward of one for each step of the first two chunks, then what no loss can be computed of.
ONES = f"""
    import jax.numpy as jnp

    from cbet_jax.intrinsic.types import Intrinsic, Params


    def begin(key, step):
        return Params({{}}, {{}}), jnp.zeros(step.view.shape[0])


    def observe(params, played, key, experience):
        return played + 1, jnp.where(played < {2 * CHUNK_FRAMES // SETTINGS.worlds}, 1.0, jnp.nan)


    def make(settings, num_actions):
        return Intrinsic("ones", 1.0, lambda _, played: played.signal, begin, observe=observe)
"""


def test_a_method_of_ones_own_is_named_by_its_file_and_bad_losses_stop_it(tmp_path):
    rewards = []
    with own_method(tmp_path, ONES) as path:
        settings = replace(SETTINGS, method=f"{path}:make")
        with pytest.raises(NonFiniteLossError, match=f"finite number by frame {SETTINGS.frames}"):
            _train(settings, on_chunk=lambda _, found: rewards.append(found["intrinsic_reward"]))
    assert rewards == [1.0] * 2


def test_what_cannot_be_trained_is_refused():
    with pytest.raises(SettingsError, match="ask for 6 worlds, not 3"):
        _train(world=corridor(3))
    with pytest.raises(SettingsError, match="unknown method"):
        _train(replace(SETTINGS, method="cebt"))
