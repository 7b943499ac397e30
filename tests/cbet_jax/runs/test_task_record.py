"""The record of a task: its best policies, a fall, and the ends that rules ask for."""

import numpy as np
import pytest

from cbet_jax.runs.task_record import EarlyEnd, TaskRecord

CHUNK = 100_000  # frames


def chunk(success, episodes=10):
    """One iteration of `[seeds]`; a success returns 0.5."""
    success = np.asarray([success], np.float32)
    ended = np.full(success.shape, episodes, np.float32)
    return {"episodes": ended, "success": success, "extrinsic_return": 0.5 * success}


def played(successes, early_end=EarlyEnd()) -> TaskRecord:  # noqa: B008
    """The record of chunks, of which each policy is the number of its chunk."""
    record = TaskRecord(len(successes[0]), early_end)
    for number, success in enumerate(successes, 1):
        better = record.add(number * CHUNK, chunk(success))
        if better.any():
            record.keep(better, {"policy": np.full((len(success), 2), number)})
    return record


def test_each_seed_keeps_the_policy_that_did_best_over_its_recent_episodes():
    """Means are over two chunks: 0.1, 0.3, 0.7, 0.5 and 0.1, 0.1, 0.1, 0.4."""
    record = played([(0.1, 0.1), (0.5, 0.1), (0.9, 0.1), (0.1, 0.7)])
    np.testing.assert_array_equal(record.best["policy"], [[3, 3], [4, 4]])
    np.testing.assert_array_equal(record.best_frames, [3 * CHUNK, 4 * CHUNK])
    np.testing.assert_allclose(record.best_success, [0.7, 0.4], rtol=1e-6)
    np.testing.assert_allclose(record.best_return, [0.35, 0.2], rtol=1e-6)


@pytest.mark.parametrize(
    ("successes", "expected"),
    [
        ([0.9, 0.9, 0.0, 0.0], "success 0.90 at 200,000 frames, and 0.00 at 400,000: "),
        ([0.9, 0.9, 0.6, 0.6], "success 0.90 at 200,000 frames"),
        ([0.05, 0.05, 0.0, 0.0], "success 0.05 at 200,000 frames"),  # too little to lose
        ([0.0], "success 0.00 at 100,000 frames"),
    ],
)
def test_a_fall_is_told_with_what_was_best(successes, expected):
    record = played([(each,) for each in successes])
    assert record.story().startswith(expected)
    assert record.fallen.tolist() == ["and" in expected]


@pytest.mark.parametrize(
    ("early_end", "successes", "expected"),
    [
        (EarlyEnd(0.9, 3 * CHUNK), [0.9] * 2, ""),  # too short
        (EarlyEnd(0.9, 3 * CHUNK), [0.0, 0.9, 0.9, 0.9], "success 0.90 over the last 300,000"),
        (EarlyEnd(0.9, 3 * CHUNK), [0.0, 0.9, 0.8, 0.9], ""),
        (EarlyEnd(without_success=2 * CHUNK), [0.1, 0.0], ""),
        (EarlyEnd(without_success=2 * CHUNK), [0.1, 0.0, 0.0], "no success in the last 200,000"),
        (EarlyEnd(), [1.0] * 9, ""),
    ],
)
def test_a_task_ends_early_as_asked(early_end, successes, expected):
    ending = played([(each,) for each in successes], early_end).ending
    assert ending.startswith(expected)
    assert bool(ending) == bool(expected)


def test_all_seeds_must_be_good_enough():
    assert not played([(1.0, 0.5)] * 9, EarlyEnd(0.9, CHUNK)).ending
    assert played([(1.0, 0.9)] * 9, EarlyEnd(0.9, CHUNK)).ending


def test_a_chunk_without_episodes_changes_nothing():
    record = TaskRecord(1)
    nothing = chunk((np.nan,), episodes=0)
    assert not record.add(CHUNK, nothing).any()
    assert record.add(2 * CHUNK, chunk((0.5,))).all()
    np.testing.assert_allclose(record.success, [0.5])
