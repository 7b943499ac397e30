"""Distances to the views of an episode, beside lists of views that grow step by step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.intrinsic.episode_memory import NEIGHBOURS, Memory, visit_rollout
from tests.support.moments import moment

ACTORS, STEPS = 3, 40
RANDOM = np.random.default_rng(0)


def _rollout(seen, reached, ended, final):
    moments = [
        moment(*each[:1], ended=each[2], final=each[1] if final else None)
        for each in zip(seen, reached, ended, strict=True)
    ]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *moments)


def _embed(views):
    return views[..., 0, 0, :2].astype(jnp.float32)  # two equal numbers


def test_a_memory_keeps_its_types_in_programs_of_64_bits():
    """So a learner in 64 bits can scan over it."""
    with jax.enable_x64(True):
        memory = Memory(jnp.zeros((2, 12, 2), jnp.float32), jnp.ones(2, jnp.int32))
        steps = _rollout(np.ones((3, 2)), np.ones((3, 2)), np.zeros((3, 2), bool), final=False)
        after, _ = jax.eval_shape(lambda m, s: visit_rollout(m, s, _embed), memory, steps)
    assert [leaf.dtype for leaf in after] == [leaf.dtype for leaf in memory]


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("slots", [12, 64])  # fewer than an episode has views, and more
def test_each_view_is_compared_with_those_of_its_episode_that_are_remembered(slots, final):
    """Over two rollouts: one actor's episodes end often, one's seldom, one's never."""
    seen = RANDOM.integers(200, size=(2 * STEPS, ACTORS))
    ended = RANDOM.random(seen.shape) < [0.3, 0.05, 0.0]
    reached = np.where(ended, RANDOM.integers(200, size=seen.shape), seen) if final else seen
    first = np.array([7, 8, 9])
    views = jnp.zeros((ACTORS, slots, 2)).at[:, 0].set(jnp.asarray(first[:, None], jnp.float32))
    memory, signals = Memory(views, jnp.ones(ACTORS, jnp.int32)), []
    visit = jax.jit(lambda memory, steps: visit_rollout(memory, steps, _embed))
    for at in (slice(STEPS), slice(STEPS, None)):
        steps = _rollout(seen[at], reached[at], ended[at], final)
        memory, signal = visit(memory, steps)
        signals.append(signal)
    distances, number = (np.concatenate(each) for each in zip(*signals, strict=True))

    for actor in range(ACTORS):
        remembered = [first[actor]]
        for step in range(2 * STEPS):
            if ended[step, actor] and not final:
                remembered = []
            others = np.array(remembered[-slots:], float)
            expected = np.sort(2 * (others - reached[step, actor]) ** 2)[:NEIGHBOURS]
            assert number[step, actor] == len(expected)
            padded = np.pad(expected, (0, NEIGHBOURS - len(expected)))
            np.testing.assert_allclose(distances[step, actor], padded, rtol=1e-6)
            if ended[step, actor] and final:
                remembered = []
            remembered.append(seen[step, actor])
        assert int(memory.number[actor]) == len(remembered)
