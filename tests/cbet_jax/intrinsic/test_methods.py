"""Coefficients and resets, and that every method trains; method_check/ holds the contract."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import AuxiliarySettings, CountSettings, TrainSettings
from cbet_jax.intrinsic import METHODS, make_intrinsic
from cbet_jax.intrinsic.interface import Params
from cbet_jax.program import make_program, seed_keys
from cbet_jax.runs import checkpoint
from cbet_jax.runs.checkpoint import Position
from tests.support.counting import ALWAYS, make, observe
from tests.support.families import others_slow
from tests.support.moments import moment, trajectory
from tests.support.tiny import NETWORK, numbers
from tests.support.worlds import corridor

STEPS, ACTIONS = 5, 3
QUICKLY = {"xla_backend_optimization_level": 0}  # to compile: it takes half the time
AUXILIARY = AuxiliarySettings(channels=(2, 2), hidden_units=4)
LEARNT = {  # the networks of each method that learn; the others have none
    "rnd": {"predictor"},
    "curiosity": {"embedding", "inverse", "forward"},
    "ride": {"embedding", "inverse", "forward"},
    "noveld": {"predictor"},
    "e3b": {"embedding", "inverse"},
    "ngu-episodic": {"embedding", "inverse"},
    "rnd-normalized": {"predictor"},
}
# The methods whose counts can be reset at random. RIDE, which counts within an episode, refuses.
COUNTING = tuple(name for name in METHODS if name not in (*LEARNT, "none", "re3"))
# RIDE counts and learns; C-BET is trained by other tests.
LATER = ("noveld", "e3b", "ngu-episodic", "re3", "rnd-normalized")  # methods that came after C-BET
TRAINED = ("ride", "rnd", "count", "curiosity", "none", *LATER)
ADAPTING = ("e3b", "ngu-episodic", "re3", "rnd-normalized")
TRACED = others_slow(TRAINED, ("ride", "rnd-normalized"))  # learns as it counts; adapts
COEFFICIENTS = {  # all others: 0.005
    **{"rnd": 0.1, "curiosity": 0.1, "ride": 0.1, "none": 0.0},
    **{"noveld": 0.05, "e3b": 1.0, "ngu-episodic": 0.001, "rnd-normalized": 1.0},
}


def _settings(name):
    return TrainSettings(method=name, counts=CountSettings(capacity=16), auxiliary=AUXILIARY)


@pytest.mark.parametrize("name", METHODS)
def test_each_method_has_its_coefficient_unless_another_is_set(name):
    assert make_intrinsic(_settings(name), ACTIONS).coefficient == COEFFICIENTS.get(name, 0.005)
    other = TrainSettings(method=name, intrinsic_coefficient=0.25)
    assert make_intrinsic(other, ACTIONS).coefficient == 0.25
    off = TrainSettings(method=name, intrinsic_coefficient=0.0)
    assert make_intrinsic(off, ACTIONS).coefficient == 0


@pytest.mark.parametrize("name", COUNTING)
def test_counts_are_reset_where_asked_for(name):
    """Where all counts are reset at each step, every visit is the first and rewarded alike."""
    method, here = make(name, ALWAYS), moment([1, 1])
    counted = observe(method, [here] * STEPS, first=here, begin=[0])
    signal = {kind: jnp.array([each[kind] for each in counted]) for kind in counted[0]}
    chex.assert_trees_all_equal(signal, jax.tree.map(jnp.ones_like, signal))
    played = trajectory(np.zeros((STEPS + 1, 2)), np.zeros((STEPS, 2)), signal=signal)
    reward, _ = method.reward_and_loss(Params({}, {}), played)
    np.testing.assert_array_equal(reward, reward[0, 0])


def _program(name):
    settings = TrainSettings(
        method=name,
        frames=200,
        worlds=4,
        batch=4,
        unroll=9,
        network=NETWORK,
        counts=CountSettings(capacity=16),
        auxiliary=AUXILIARY,
    )
    return make_program(settings, corridor(4), seeds=1, iterations_per_chunk=2)


@pytest.mark.parametrize("name", TRACED)
def test_every_method_is_trained_by_a_program_that_goes_on_with_its_states(name):
    """The program is traced, not compiled; the slow test below runs it."""
    program = _program(name)
    state = jax.eval_shape(program.init, seed_keys(1))
    after, metrics = jax.eval_shape(program.advance, state)
    chex.assert_trees_all_equal_shapes_and_dtypes(after, state)
    chex.assert_shape(list(metrics.values()), (2, 1))  # iterations, seeds


@pytest.mark.slow  # a run resumed bit for bit, and C-BET's numbers, are tested by default
@pytest.mark.parametrize("name", TRAINED)
def test_every_method_trains_and_resumes(name, tmp_path):
    """The networks that learn change, each of them; the target of RND never does."""
    program = _program(name)
    init = jax.jit(program.init, compiler_options=QUICKLY)
    advance = jax.jit(program.advance, compiler_options=QUICKLY)
    state = init(seed_keys(1))
    before, middle = state.learner, advance(state)[0]
    assert set(before.intrinsic.learnt) == LEARNT.get(name, set())
    path = checkpoint.save(tmp_path, middle, Position(2, 72))
    state, metrics = advance(middle)
    after = state.learner
    for network, params in before.intrinsic.learnt.items():
        assert _bytes(params) != _bytes(after.intrinsic.learnt[network])
    fixed, later = before.intrinsic.fixed, after.intrinsic.fixed
    assert _bytes(fixed.get("target")) == _bytes(later.get("target"))
    assert (_bytes(fixed) != _bytes(later)) == (name in ADAPTING)
    assert ("target" in later) == (name in ("rnd", "noveld", "rnd-normalized"))
    assert _bytes(before.policy) != _bytes(after.policy)
    chex.assert_tree_all_finite(after)
    assert np.isnan(metrics["first_bad_update"]).all()

    stored, _ = checkpoint.load(path, jax.eval_shape(init, seed_keys(1)))
    resumed, resumed_metrics = advance(stored)
    chex.assert_trees_all_equal(resumed_metrics, metrics)
    chex.assert_trees_all_equal(numbers(resumed), numbers(state))


def _bytes(tree):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tree)]
