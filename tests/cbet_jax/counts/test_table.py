"""Count tables against Python dictionaries."""

from collections import Counter
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import CountSettings, TrainSettings
from cbet_jax.counts import table as counts
from cbet_jax.intrinsic.cbet import cbet
from tests.support.worlds import multi_env

ACTORS = 32


def _keys(numbers):
    """Keys whose buckets are spread, one for each number."""
    words = np.asarray(numbers, np.uint32)
    return jnp.stack([words * jnp.uint32(2654435761), words], axis=-1)


def test_counts_by_hand():
    table = counts.empty_table(16)
    seen = []
    for key in _keys([1, 2, 1, 1]):
        table, count = counts.visit(table, key)
        seen.append(int(count))
    assert seen == [1, 1, 2, 3]
    assert int(table.overflow) == 0


def test_reset_forgets_everything_and_keeps_counting():
    table, _ = counts.visit(counts.empty_table(16), _keys([1])[0])
    table, count = counts.visit(counts.reset(table, jnp.array(True)), _keys([1])[0])
    assert int(count) == 1
    table, count = counts.visit(counts.reset(table, jnp.array(False)), _keys([1])[0])
    assert int(count) == 2


def test_a_full_table_overflows_and_never_merges():
    capacity, visits = 16, 200
    table, seen = jax.lax.scan(counts.visit, counts.empty_table(capacity), _keys(range(visits)))
    np.testing.assert_array_equal(seen, 1)  # every key is new, found room or not
    assert visits - capacity <= int(table.overflow) < visits
    stored = np.unique(np.asarray(table.slots)[:, counts.FINGERPRINT])
    assert len(stored) == visits - int(table.overflow)


def test_a_half_full_table_has_not_overflowed():
    capacity = 2**14
    words = np.random.default_rng(0).integers(2**32, size=(capacity // 2, 2), dtype=np.uint32)
    table, _ = jax.lax.scan(counts.visit, counts.empty_table(capacity), jnp.asarray(words))
    assert int(table.overflow) == 0


@pytest.mark.parametrize("probability", [pytest.param(0.0, marks=pytest.mark.slow), 0.001])
def test_equal_to_dictionaries_on_100_000_real_steps(probability):
    """Counts of a random walk through the three worlds, and of the resets it tossed."""
    steps, world = 100_000 // ACTORS, multi_env(ACTORS)
    counting = CountSettings(reset_probability=probability, capacity=2**14)
    method = cbet(TrainSettings(counts=counting), world.num_actions)
    log, memory = _walk(world, method, steps)
    expected = _count_in_dictionaries(log)
    np.testing.assert_array_equal(log["states"], expected["states"])
    np.testing.assert_array_equal(log["changes"], expected["changes"])
    resets = sum(int(log[name][-1].sum()) - ACTORS for name in ("states_age", "changes_age"))
    assert (resets == 0) == (probability == 0)
    assert float(method.metrics(memory)["count_overflow"]) == 0


def _walk(world, method, steps):
    """Plays random actions; returns what was seen, counted and reset, step by step."""

    @partial(jax.jit, compiler_options={"xla_backend_optimization_level": 3})  # a long loop
    def run(key):
        world_key, memory_key, walk_key = jax.random.split(key, 3)
        state, first = world.init(world_key)
        _, memory = method.init(memory_key, first)

        def walk(carry, key):
            state, memory = carry
            action_key, observe_key = jax.random.split(key)
            action = jax.random.randint(action_key, (ACTORS,), 0, world.num_actions)
            state, step = world.step(state, action)
            ages = {f"{kind}_age": tally.tables.generation for kind, tally in memory.items()}
            memory, signal = method.observe(memory, observe_key, step)
            log = {"view": step.view, "panorama": step.panorama, **signal, **ages}
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
