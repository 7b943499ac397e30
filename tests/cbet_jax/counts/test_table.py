"""Count tables by hand: counts, resets, overflow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import CountSettings, TrainSettings
from cbet_jax.counts import table as counts

VISIT = jax.jit(counts.visit)
PAPER = {"frames": 50_000_000, "worlds": 40}  # 1,250,000 steps of each actor


def _keys(numbers):
    """Keys whose buckets are spread, one for each number."""
    words = np.asarray(numbers, np.uint32)
    return jnp.asarray(np.stack([words * np.uint32(2654435761), words], axis=-1))


def test_counts_by_hand():
    table = counts.empty_table(16)
    seen = []
    for key in _keys([1, 2, 1, 1]):
        table, count = VISIT(table, key)
        seen.append(int(count))
    assert seen == [1, 1, 2, 3]
    assert int(table.overflow) == 0


def test_reset_forgets_everything_and_keeps_counting():
    table, _ = VISIT(counts.empty_table(16), _keys([1])[0])
    table, count = VISIT(counts.reset(table, jnp.array(True)), _keys([1])[0])
    assert int(count) == 1
    table, count = VISIT(counts.reset(table, jnp.array(False)), _keys([1])[0])
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


@pytest.mark.parametrize(
    ("shared", "lasting", "slots"),
    [
        (False, False, 2**14),
        (True, False, 2**20),  # 40 x 2^14, rounded up
        (False, True, 2**21),
        (True, True, 2**26),
    ],
)
def test_tables_have_room_for_what_is_counted(shared, lasting, slots):
    settings = TrainSettings(**PAPER, counts=CountSettings(shared=shared))
    assert counts.table_capacity(settings, lasting=lasting) == slots


def test_lasting_tables_have_some_room_in_short_runs_too():
    assert counts.table_capacity(TrainSettings(frames=1, worlds=4, batch=4), lasting=True) == 2**18


@pytest.mark.parametrize("lasting", [False, True])
def test_the_settings_can_say_how_large_tables_are(lasting):
    settings = TrainSettings(counts=CountSettings(capacity=64, shared=True))
    assert counts.table_capacity(settings, lasting=lasting) == 64
