"""The training program: seeds, batches, chunks, compilation, learning."""

from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax import program as programs
from cbet_jax.config import CountSettings, SettingsError
from cbet_jax.learner import LearnerState
from cbet_jax.program import _map_agents, _update_agents, make_program, seed_keys
from cbet_jax.settings.swept import differing, with_numbers
from cbet_jax.train import TrainState
from tests.support import tiny
from tests.support.tiny import CHUNK
from tests.support.tiny import LEARNING as TINY
from tests.support.worlds import corridor, single_env


def _leaves(state):
    """Every number of a state, in numpy: on the device each shape would compile its own slices."""
    return list(tiny.numbers(state).values())


@pytest.fixture(scope="module")
def program():
    """It is the one that tests/cbet_jax/runs/test_policy.py learns with, too."""
    return make_program(TINY, corridor(TINY.worlds), seeds=1, iterations_per_chunk=CHUNK)


@pytest.fixture(scope="module")
def two_seeds():
    return make_program(TINY, corridor(TINY.worlds), seeds=2, iterations_per_chunk=CHUNK)


def test_shapes_and_one_compilation(program):
    state = program.init(seed_keys(1))
    for chunk in range(3):
        state, metrics = program.advance(state)
        chex.assert_shape(list(metrics.values()), (CHUNK, 1))  # iterations, seeds
        np.testing.assert_array_equal(state.iteration, [CHUNK * (chunk + 1)])
    assert program.advance._cache_size() == 1
    assert np.isfinite(metrics["policy_loss"]).all()
    assert np.isnan(metrics["first_bad_update"]).all()


@pytest.mark.parametrize(("seeds", "at_once"), [(1, 1), (3, 1), (3, 2), (3, 3)])
def test_what_updates_seeds_is_the_same_for_each_of_them(seeds, at_once):
    keys, numbers = seed_keys(seeds), np.arange(seeds) * 10.0
    states = {"key": keys, "table": jnp.ones((seeds, 4))}

    def function(one):
        number, state = one
        assert (state["key"].shape, state["table"].shape) == ((), (4,))
        after = {"key": jax.random.fold_in(state["key"], 7), "table": state["table"] + number}
        return after, state["table"].sum() + number

    after, found = _update_agents(function, seeds, at_once, (numbers, states))
    np.testing.assert_array_equal(found, 4 + numbers)
    np.testing.assert_array_equal(after["table"], 1 + np.tile(numbers[:, None], 4))
    wanted = jax.vmap(jax.random.fold_in, (0, None))(keys, 7)
    np.testing.assert_array_equal(*map(jax.random.key_data, (after["key"], wanted)))


def test_a_state_may_begin_with_numbers_of_python():
    begun = _map_agents(lambda key: {"key": key, "steps": 3}, 1, 1, seed_keys(1))
    chex.assert_shape(list(begun.values()), (1,))


def test_states_of_seeds_are_not_held_twice():
    """Where they are updated one after the other, as on a CPU: but that of one of them."""
    size = 10**6

    def function(one):
        number, state = one

        def visit(state, place):
            return state.at[place].add(number), state[place]

        return jax.lax.scan(visit, state, jnp.arange(5))

    def update(states):
        return _update_agents(function, 8, 1, (jnp.zeros(8), states))

    states = jax.ShapeDtypeStruct((8, size), np.float32)
    needed = jax.jit(update, donate_argnums=0).lower(states).compile().memory_analysis()
    assert needed.alias_size_in_bytes >= 8 * 4 * size
    assert needed.temp_size_in_bytes < 3 * 4 * size


@pytest.mark.slow
def test_a_seed_learns_the_same_alone_and_in_company(program, two_seeds):
    together, _ = two_seeds.advance(two_seeds.init(seed_keys(2)))
    one, _ = program.advance(program.init(seed_keys(1, first_seed=1)))
    second = [leaf[1:] for leaf in _leaves(together)]
    chex.assert_trees_all_close(second, _leaves(one), atol=1e-5)


def test_each_agent_of_a_program_has_the_numbers_of_its_own_settings(monkeypatch):
    """With stand-ins for what begins and learns; the slow test below learns."""
    settings = [TINY, _with_other_numbers(TINY), TINY]

    def numbers_of(trainer):
        return list(map(jnp.float32, jax.tree.leaves(trainer.settings)))

    def begin(trainer, key):
        learner = LearnerState(numbers_of(trainer), (), (), {})
        return TrainState(learner, (), (), key, jnp.zeros((), jnp.int32))

    def chunk(iterations, trainer, state):
        found = enumerate(numbers_of(trainer))
        return state, {str(i): jnp.full(iterations, number) for i, number in found}

    monkeypatch.setattr(programs, "init", begin)
    monkeypatch.setattr(programs, "_chunk", chunk)
    program = make_program(settings, corridor(TINY.worlds), seeds=2, iterations_per_chunk=3)
    after, found = program.advance(program.init(jnp.tile(seed_keys(2), 3)))
    for index, numbers in enumerate(zip(*map(jax.tree.leaves, settings), strict=True)):
        wanted = np.float32(np.repeat(numbers, 2))
        np.testing.assert_array_equal(after.learner.policy[index], wanted)
        np.testing.assert_array_equal(found[str(index)], [wanted] * 3)


def test_numbers_that_runs_share_are_constants_of_their_program():
    """So a program of one run computes the bits that it computed before there were several."""
    other = replace(TINY, extrinsic_weight=0.5)
    found = differing([TINY, other, TINY])
    assert jax.tree.leaves(differing([TINY])) == []
    assert with_numbers(TINY, differing([TINY])) == TINY
    (column,) = jax.tree.leaves(found)
    np.testing.assert_array_equal(column, np.float32([TINY.extrinsic_weight, 0.5] * 2)[:3])
    assert with_numbers(TINY, jax.tree.map(lambda column: float(column[1]), found)) == other


def _with_other_numbers(settings):
    return jax.tree.map(lambda number: 0.7 * number, settings)


@pytest.mark.slow
def test_settings_of_one_program_learn_what_each_learns_alone(two_seeds):
    """Bit for bit, whichever numbers differ, and whatever the size of the batch."""
    other = _with_other_numbers(TINY)
    assert len(jax.tree.leaves(TINY)) == 13
    both = make_program([other, TINY], corridor(TINY.worlds), seeds=2, iterations_per_chunk=2)
    together, metrics = both.advance(both.init(jnp.tile(seed_keys(2), 2)))
    alone, of_one = two_seeds.advance(two_seeds.init(seed_keys(2)))
    together = {name: leaf[2:] for name, leaf in tiny.numbers(together).items()}
    chex.assert_trees_all_equal(together, tiny.numbers(alone))
    chex.assert_trees_all_equal({name: x[:, 2:] for name, x in metrics.items()}, of_one)
    first, second = np.split(metrics["policy_loss"], 2, axis=1)
    assert (first != second).all()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"unroll": 7}, "unroll is 10, not 7"),
        ({"frames": 7}, f"frames is {tiny.FRAMES}, not 7"),
        ({"intrinsic_coefficient": 0.1}, "intrinsic_coefficient is None, not another number"),
        (
            {"counts": CountSettings(capacity=64, reset_probability=0.0)},
            "counts.reset_probability is another number, not 0.0",
        ),
    ],
)
def test_settings_of_one_program_differ_in_numbers_only(changes, problem):
    base = replace(tiny.SETTINGS, counts=CountSettings(capacity=64, reset_probability=0.5))
    with pytest.raises(SettingsError, match=problem):
        make_program([base, replace(base, **changes)], corridor(base.worlds), 1, 1)


@pytest.mark.slow
def test_side_by_side_seeds_learn_what_they_learn_one_after_the_other():
    world = single_env("DoorKey-5x5", TINY.worlds)
    states = []
    for at_once in (1, 2):
        program = make_program(TINY, world, 2, 2, seeds_at_once=at_once)
        state, _ = program.advance(program.init(seed_keys(2)))
        states.append(_leaves(state))
    chex.assert_trees_all_close(*states, atol=1e-5)


@pytest.mark.slow
def test_chunk_size_does_not_change_what_is_learnt():
    world = single_env("DoorKey-5x5", TINY.worlds)
    states = []
    for iterations, calls in ((1, 4), (4, 1)):
        program = make_program(TINY, world, seeds=1, iterations_per_chunk=iterations)
        state = program.init(seed_keys(1))
        for _ in range(calls):
            state, _ = program.advance(state)
        states.append(_leaves(state))
    chex.assert_trees_all_close(*states, atol=1e-6)


def test_different_seeds_play_and_learn_differently(program):
    states = [program.advance(program.init(seed_keys(1, seed)))[0] for seed in (0, 1)]
    assert not np.allclose(
        *(state.learner.policy["params"]["policy"]["kernel"] for state in states)
    )
    places = [state.actor.world.worlds[0] for state in states]
    assert not np.array_equal(*places)


def test_keys_are_never_used_twice():
    with jax.debug_key_reuse(True):
        program = make_program(
            TINY, single_env("DoorKey-5x5", TINY.worlds), seeds=1, iterations_per_chunk=1
        )
        state = jax.eval_shape(program.init, seed_keys(1))  # tracing checks; nothing is compiled
        jax.eval_shape(program.advance, state)
