"""What count-based methods count, for whom, and when; and their counts against dictionaries."""

from collections import Counter
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import CountSettings, TrainSettings
from cbet_jax.intrinsic.cbet import cbet
from tests.support.counting import KEY, NEVER, NO_PARAMS, make, observe, observe_states, rollout_of
from tests.support.families import slow
from tests.support.moments import experience, moment
from tests.support.worlds import multi_env, single_env

ACTORS = 32


def test_a_rollout_begins_with_one_more_visit_of_the_state():
    here = moment([1, 1])
    counted = observe(make("cbet", NEVER), [here, here], first=here, begin=[0])
    assert [c["states"] for c in counted] == [[2, 2], [3, 3]]
    assert [c["changes"] for c in counted] == [[1, 1], [2, 2]]


def test_a_shared_table_is_visited_by_one_actor_after_the_other():
    settings = CountSettings(reset_probability=0.0, capacity=16, shared=True)
    moments = [moment([1, 1]), moment([1, 2]), moment([2, 2])]
    states = observe_states(make("count", settings), moments, first=moment([0, 0]))
    assert states == [[1, 2], [3, 1], [2, 3]]


def test_a_shared_table_is_reset_for_all_actors_at_once():
    settings = CountSettings(reset_probability=1.0, capacity=16, shared=True)
    moments = [moment([1, 1])] * 2
    assert observe_states(make("count", settings), moments, first=moment([0, 0])) == [[1, 2]] * 2


@pytest.mark.parametrize(("keys", "shared"), [slow("exact", False), ("ternary", True)])
def test_a_whole_rollout_is_counted_as_its_steps_are(keys, shared):
    counts = CountSettings(reset_probability=0.1, capacity=64, keys=keys, shared=shared)
    method = make("cbet", counts)
    numbers = np.random.default_rng(1).integers(0, 3, (2, 7, 3)) * 100
    first, *moments = [moment(*each) for each in numbers.swapaxes(0, 1).tolist()]
    steps = jax.tree.map(lambda *leaves: np.stack(leaves), *moments)

    @jax.jit
    def observe_both_ways(first, steps):
        keys = jax.random.split(KEY, len(moments))
        _, before = method.init(KEY, first)
        memory, counted = before, []
        for key, here in zip(keys, moments, strict=True):
            memory, signal = method.observe(NO_PARAMS, memory, key[None], rollout_of(here))
            counted.append(signal)
        one_by_one = memory, jax.tree.map(lambda *rows: jnp.concatenate(rows), *counted)
        return method.observe(NO_PARAMS, before, keys, experience(steps)), one_by_one

    at_once, one_by_one = observe_both_ways(first, steps)
    chex.assert_trees_all_equal(at_once, one_by_one)
    _, signal = at_once
    assert signal["changes"].max() > 1


@pytest.mark.parametrize(
    ("method", "changes", "slots"),
    [
        ("cbet", {}, 2**14),
        ("cbet", {"reset_probability": 0.0}, 2**21),
        ("cbet", {"reset_probability": 0.0, "capacity": 64}, 64),
        ("ride", {"random_resets": False}, 2**14),
        ("count", {}, 2**21),
        ("count", {"reset_probability": 0.001}, 2**14),
        ("count", {"reset_probability": 0.001, "shared": True}, 2**20),
        ("count", {"shared": True}, 2**26),
        ("ride", {}, 2**14),
    ],
)
def test_what_is_never_reset_has_more_room(method, changes, slots):
    made = make(method, CountSettings(**changes))  # for 40 actors, 1,250,000 steps of each
    _, memory = jax.eval_shape(made.init, KEY, moment([0]))
    assert memory["states"].tables.slots.shape == (1, slots, 3)


def test_the_overflow_of_many_actors_does_not_wrap():
    """Each actor's is an integer of 32 bits."""
    method = make("cbet", NEVER)
    _, memory = method.init(KEY, moment([0, 0]))
    most = jnp.full(2, 2**31 - 1)
    full = {
        kind: counts._replace(tables=counts.tables._replace(overflow=most))
        for kind, counts in memory.items()
    }
    assert float(method.metrics(full)["count_overflow"]) == 2**33


LONG = [slow(p, 100_000, multi_env, 3) for p in (0.001, 0.0)]
ONE = partial(single_env, "DoorKey-6x6")


@pytest.mark.parametrize(
    ("probability", "real_steps", "make_world", "optimised"), [(0.01, 10_000, ONE, 0), *LONG]
)
def test_equal_to_dictionaries_on_real_steps(probability, real_steps, make_world, optimised):
    """Counts of a random walk through one world or three, and of the resets it tossed."""
    steps, world = real_steps // ACTORS, make_world(ACTORS)
    counting = CountSettings(reset_probability=probability, capacity=2**14)
    method = cbet(TrainSettings(counts=counting), world.num_actions)
    log, memory = _walk(world, method, steps, optimised)
    expected = _count_in_dictionaries(log)
    np.testing.assert_array_equal(log["states"], expected["states"])
    np.testing.assert_array_equal(log["changes"], expected["changes"])
    resets = sum(int(log[name][-1].sum()) - ACTORS for name in ("states_age", "changes_age"))
    assert (resets == 0) == (probability == 0)
    assert float(method.metrics(memory)["count_overflow"]) == 0


def _walk(world, method, steps, optimised):
    """Plays random actions; returns what was seen, counted and reset, step by step.

    Only a long loop is worth the compiler's optimisations.
    """

    @partial(jax.jit, compiler_options={"xla_backend_optimization_level": optimised})
    def run(key):
        world_key, memory_key, walk_key = jax.random.split(key, 3)
        state, first = world.init(world_key)
        _, memory = method.init(memory_key, first)

        def walk(carry, key):
            state, memory = carry
            action_key, observe_key = jax.random.split(key)
            action = jax.random.randint(action_key, (ACTORS,), 0, world.num_actions)
            state, step = world.step(state, action)
            ages = {f"{kind}_age": counts.tables.generation for kind, counts in memory.items()}
            seen = observe_key[None], rollout_of(step)
            memory, signal = method.observe(NO_PARAMS, memory, *seen)
            log = {"view": step.view, "panorama": step.panorama, **ages}
            log |= {kind: count[0] for kind, count in signal.items()}
            return (state, memory), log

        carry, log = jax.lax.scan(walk, (state, memory), jax.random.split(walk_key, steps))
        return log, first.panorama, carry[1]

    log, panorama, memory = run(jax.random.key(3))
    log = {name: np.asarray(values) for name, values in log.items()}
    log["change"] = np.diff(log["panorama"], axis=0, prepend=np.asarray(panorama)[None])
    return log, memory


def _count_in_dictionaries(log):
    """Counts again, with one dictionary for each table, cleared where its generation rose."""
    expected = {}
    for name, seen in (("states", log["view"]), ("changes", log["change"])):
        count = np.zeros(log["view"].shape[:2], np.int64)
        for actor in range(ACTORS):
            table, age = Counter(), log[f"{name}_age"][0, actor]
            for t in range(len(count)):
                if log[f"{name}_age"][t, actor] != age:
                    table, age = Counter(), log[f"{name}_age"][t, actor]
                key = seen[t, actor].tobytes()
                table[key] += 1
                count[t, actor] = table[key]
        expected[name] = count
    return expected
