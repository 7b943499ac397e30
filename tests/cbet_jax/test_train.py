"""What an iteration learns from."""

import chex
import jax.numpy as jnp
import numpy as np

from cbet_jax.train import split_batches
from cbet_jax.types import LSTMState, Trajectory, Transition


def test_every_sequence_is_learnt_from_once_oldest_first():
    rollouts, steps, worlds, batches = 2, 3, 6, 3
    number = jnp.arange(rollouts * worlds).reshape(rollouts, 1, worlds)
    leaf = jnp.broadcast_to(number, (rollouts, steps, worlds))
    empty = LSTMState(leaf[..., None], leaf[..., None])
    trajectory = Trajectory(leaf, leaf, Transition(*[leaf] * 5), (), empty)
    batched = split_batches(trajectory, batches)
    chex.assert_shape(batched.view, (batches, steps, 4))
    chex.assert_shape(batched.initial_state.hidden, (batches, steps, 4, 1))
    np.testing.assert_array_equal(batched.view[:, 0].reshape(-1), np.arange(12))
