"""The contract that every method keeps, and that every one of them trains."""

from functools import cache, partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import AuxiliarySettings, CountSettings, TrainSettings
from cbet_jax.intrinsic import METHODS, make_intrinsic
from cbet_jax.intrinsic.ablation import REWARDS
from cbet_jax.intrinsic.types import Experience, Params
from cbet_jax.program import make_program, seed_keys
from cbet_jax.runs import checkpoint
from cbet_jax.runs.checkpoint import Position
from cbet_jax.types import Trajectory, unchanged
from envs.types import Step
from tests.support.counting import ALWAYS, make, observe
from tests.support.families import others_slow
from tests.support.moments import moment, trajectory
from tests.support.tiny import NETWORK, numbers
from tests.support.worlds import corridor

STEPS, WORLDS, ACTIONS = 5, 3, 3
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
COUNTING = tuple(name for name in METHODS if name not in (*LEARNT, "none"))
# RIDE counts and learns; C-BET is trained by other tests.
LATER = ("noveld", "e3b", "ngu-episodic", "rnd-normalized")  # methods that came after C-BET
TRAINED = ("ride", "rnd", "count", "curiosity", "none", *LATER)
TRACED = others_slow(TRAINED, ("ride", "rnd-normalized"))  # learns as it counts; adapts
COEFFICIENTS = {  # all others: 0.005
    **{"rnd": 0.1, "curiosity": 0.1, "ride": 0.1, "none": 0.0},
    **{"noveld": 0.05, "e3b": 1.0, "ngu-episodic": 0.001, "rnd-normalized": 1.0},
}


class Result(NamedTuple):
    """What a method makes of a few steps."""

    params: Any
    before: Any  # the memory
    after: Any
    trajectory: Trajectory
    reward: Any
    loss: Any
    terms: Any
    gradient: Any  # of the loss, by the parameters that learn
    metrics: Any
    adapted: Any  # the parameters


def _settings(name):
    return TrainSettings(method=name, counts=CountSettings(capacity=16), auxiliary=AUXILIARY)


@cache
def _player(name):
    method = make_intrinsic(_settings(name), ACTIONS)
    return jax.jit(lambda *steps: _play(method, *steps), compiler_options=QUICKLY)


def _observe(method, params, before, first: Step, steps: Step, action) -> tuple[Any, Trajectory]:
    begin_key, key = jax.random.split(jax.random.key(4))
    memory = method.begin_rollout(before, begin_key, first)
    view = jnp.concatenate([first.view[None], steps.view])
    experience = Experience(view[:-1], action, steps)
    after, signal = method.observe(params, memory, jax.random.split(key, STEPS), experience)
    blank = trajectory(np.zeros((STEPS + 1, WORLDS)), action, num_actions=ACTIONS)
    return after, blank._replace(view=view, signal=signal)


def _play(method, first, *steps) -> Result:
    params, before = method.init(jax.random.key(3), first)
    after, played = _observe(method, params, before, first, *steps)
    loss_of = lambda learnt: method.reward_and_loss(params._replace(learnt=learnt), played)[1]  # noqa: E731
    (loss, terms), gradient = jax.value_and_grad(loss_of, has_aux=True)(params.learnt)
    reward, _ = method.reward_and_loss(params, played)
    return Result(
        params,
        before,
        after,
        played,
        reward,
        loss,
        terms,
        gradient,
        method.metrics(after),
        method.adapt(params, played, unchanged),
    )


def _random_steps(seed):
    """Steps with views out of three; an episode ends, another succeeds."""
    random = np.random.default_rng(seed)
    numbers = random.integers(3, size=(STEPS + 1, WORLDS))
    flags = np.zeros((2, STEPS + 1, WORLDS), bool)
    flags[0, 2, 0] = flags[1, 4, 1] = True
    moments = [
        moment(view, ended=ended, success=success)
        for view, ended, success in zip(numbers, *flags, strict=True)
    ]
    moments = jax.device_get(moments)
    steps = jax.tree.map(lambda *leaves: np.stack(leaves), *moments[1:])
    actions = random.integers(ACTIONS, size=(STEPS, WORLDS))
    return jax.tree.map(jnp.asarray, (moments[0], steps, actions))


# Those of the ablation differ from C-BET, Curiosity differs from RIDE, and variants differ from RND
# in their formulas only, which have tests of their own.
VARIANTS = ("noveld", "rnd-normalized")
REPEATED = (*REWARDS, "curiosity", *VARIANTS)
# Without `jit` hundreds of operations are compiled one by one. Tests by hand count so, too.
UNCOMPILED = ("rnd",)


@pytest.fixture(
    scope="module",
    params=others_slow(METHODS, [name for name in METHODS if name not in REPEATED]),
)
def name(request):
    return request.param


def test_shapes_and_numbers(name):
    result = _player(name)(*_random_steps(0))
    chex.assert_shape(result.reward, (STEPS, WORLDS))
    chex.assert_shape([result.loss, *result.terms.values(), *result.metrics.values()], ())
    chex.assert_tree_all_finite((result.reward, result.loss, result.terms, result.gradient))
    chex.assert_trees_all_equal_shapes_and_dtypes(result.before, result.after)
    chex.assert_trees_all_equal_shapes_and_dtypes(result.params, result.adapted)
    chex.assert_trees_all_equal(result.params.learnt, result.adapted.learnt)
    for leaf in jax.tree.leaves(result.trajectory.signal):
        chex.assert_shape(leaf, (STEPS, WORLDS, ...))
    assert (np.asarray(result.reward) >= 0).all()
    assert (np.asarray(result.reward) > 0).any() == (name != "none")


@pytest.mark.parametrize("name", others_slow(METHODS, UNCOMPILED), indirect=True)
def test_compiled_or_not_it_is_the_same(name):
    compiled = _player(name)(*_random_steps(0))
    with jax.disable_jit():
        method = make_intrinsic(_settings(name), ACTIONS)
        after, played = _observe(method, compiled.params, compiled.before, *_random_steps(0))
        reward, (loss, _) = method.reward_and_loss(compiled.params, played)
    chex.assert_trees_all_equal(played.signal, compiled.trajectory.signal)
    chex.assert_trees_all_equal(after, compiled.after)
    chex.assert_trees_all_close((reward, loss), (compiled.reward, compiled.loss), rtol=1e-4)


def test_worlds_do_not_depend_on_each_other(name):
    play, (first, steps, action) = _player(name), jax.device_get(_random_steps(0))
    other_first, other_steps, other_action = jax.device_get(_random_steps(1))
    one = play(first, steps, action)
    join = partial(np.concatenate, axis=1)
    mixed = join([action[:, :1], other_action[:, 1:]])
    firsts = jax.tree.map(lambda a, b: np.concatenate([a[:1], b[1:]]), first, other_first)
    others = jax.tree.map(lambda a, b: join([a[:, :1], b[:, 1:]]), steps, other_steps)
    other = play(firsts, others, mixed)
    in_first = lambda tree: jax.tree.map(lambda leaf: np.asarray(leaf)[:, 0], tree)  # noqa: E731
    chex.assert_trees_all_equal(in_first(one.trajectory.signal), in_first(other.trajectory.signal))
    np.testing.assert_allclose(in_first(one.reward), in_first(other.reward), rtol=1e-5)


def test_the_loss_reaches_every_network_that_learns(name):
    result = _player(name)(*_random_steps(0))
    assert set(result.params.learnt) == LEARNT.get(name, set())
    for gradient in result.gradient.values():
        assert all(np.any(leaf) for leaf in jax.tree.leaves(gradient))


@pytest.mark.parametrize("name", METHODS, indirect=True)
def test_each_method_has_its_coefficient_unless_another_is_set(name):
    assert make_intrinsic(_settings(name), ACTIONS).coefficient == COEFFICIENTS.get(name, 0.005)
    other = TrainSettings(method=name, intrinsic_coefficient=0.25)
    assert make_intrinsic(other, ACTIONS).coefficient == 0.25


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
    path = checkpoint.save(tmp_path, middle, Position(2, 72))
    state, metrics = advance(middle)
    after = state.learner
    for network, params in before.intrinsic.learnt.items():
        assert _bytes(params) != _bytes(after.intrinsic.learnt[network])
    fixed, later = before.intrinsic.fixed, after.intrinsic.fixed
    assert _bytes(fixed.get("target")) == _bytes(later.get("target"))
    assert (_bytes(fixed) != _bytes(later)) == (name in ("e3b", "ngu-episodic", "rnd-normalized"))
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
