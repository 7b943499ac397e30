"""The C-BET method by hand: what is counted, when, and what it is worth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import CountSettings
from cbet_jax.intrinsic.cbet import CbetSignal, cbet, reward
from cbet_jax.types import LSTMState, Trajectory
from envs.types import Step

KEY = jax.random.key(0)
ACTORS = 2


def _step(view: list[int], panorama: list[int]) -> Step:
    """One moment of two actors, whose view and panorama are a number each."""
    nothing = jnp.zeros(ACTORS, bool)
    return Step(
        view=jnp.broadcast_to(jnp.array(view, jnp.uint8)[:, None, None, None], (ACTORS, 7, 7, 3)),
        panorama=jnp.array(panorama, jnp.uint16)[:, None],
        reward=jnp.zeros(ACTORS),
        success=nothing,
        terminated=nothing,
        truncated=nothing,
        length=jnp.ones(ACTORS, jnp.int32),
        environment=jnp.zeros(ACTORS, jnp.int32),
        interaction=jnp.zeros((ACTORS, 2), jnp.uint32),
    )


def _observe(method, steps, *, first):
    """Returns the counts of states and of changes, step by step."""
    _, memory = method.init(KEY, first)
    counts = []
    for step in steps:
        memory, signal = method.observe(memory, KEY, step)
        counts.append((signal.state_count.tolist(), signal.change_count.tolist()))
    return counts


def test_states_and_changes_are_counted_for_each_actor():
    method = cbet(CountSettings(reset_probability=0.0))
    steps = [_step([1, 1], [5, 8]), _step([1, 2], [5, 8]), _step([1, 1], [10, 8])]
    counts = _observe(method, steps, first=_step([0, 0], [0, 8]))
    states = [state for state, _ in counts]
    changes = [change for _, change in counts]
    assert states == [[1, 1], [2, 1], [3, 2]]
    # The first actor's changes: +5, 0, +5. The second one's: 0, 0, 0.
    assert changes == [[1, 1], [1, 2], [2, 3]]


def test_certain_resets_make_every_visit_the_first():
    method = cbet(CountSettings(reset_probability=1.0))
    counts = _observe(method, [_step([1, 1], [5, 8])] * 3, first=_step([0, 0], [0, 8]))
    assert counts == [([1, 1], [1, 1])] * 3


def test_a_sequence_begins_with_one_more_visit_of_the_state():
    method = cbet(CountSettings(reset_probability=0.0))
    here = _step([1, 1], [5, 5])
    _, memory = method.init(KEY, here)
    memory = method.begin(memory, KEY, here)
    _, signal = method.observe(memory, KEY, here)
    assert signal.state_count.tolist() == [2, 2]
    assert signal.change_count.tolist() == [1, 1]


def test_resets_come_as_often_as_asked_for():
    probability, steps = 0.2, 2000
    method = cbet(CountSettings(reset_probability=probability))
    here = _step([1, 1], [5, 5])
    _, memory = method.init(KEY, here)
    keys = jax.random.split(KEY, steps)
    memory, _ = jax.lax.scan(lambda memory, key: method.observe(memory, key, here), memory, keys)
    for table in (memory.states, memory.changes):
        resets = np.asarray(table.generation) - 1
        spread = 5 * np.sqrt(steps * probability * (1 - probability))
        np.testing.assert_allclose(resets, steps * probability, atol=spread)
    assert not np.array_equal(memory.states.generation, memory.changes.generation)


@pytest.mark.parametrize(("state", "change", "expected"), [(1, 1, 0.5), (3, 1, 0.25), (4, 6, 0.1)])
def test_the_reward_is_one_over_the_sum_of_the_counts(state, change, expected):
    counts = CbetSignal(jnp.full((1, 1), state, jnp.uint32), jnp.full((1, 1), change, jnp.uint32))
    nothing = jnp.zeros((1, 1))
    empty = LSTMState(nothing, nothing)
    trajectory = Trajectory(nothing, nothing, nothing, nothing, nothing, nothing, counts, empty)
    np.testing.assert_allclose(reward((), trajectory), expected)
