"""Moments and trajectories written by hand, for the methods' tests."""

import jax.numpy as jnp
import numpy as np

from cbet_jax.types import LSTMState, Trajectory, Transition
from envs.types import Step


def moment(view, panorama=None, *, ended=None, success=None) -> Step:
    """One moment of a few actors, whose view and panorama are a number each."""
    actors = len(view)
    flags = lambda given: jnp.array([False] * actors if given is None else given)  # noqa: E731
    return Step(
        view=views(view),
        panorama=jnp.array(view if panorama is None else panorama, jnp.uint16)[:, None],
        reward=jnp.zeros(actors),
        success=flags(success),
        terminated=flags(None),
        truncated=flags(ended),
        length=jnp.ones(actors, jnp.int32),
        environment=jnp.zeros(actors, jnp.int32),
        interaction=jnp.zeros((actors, 2), jnp.uint32),
    )


def views(numbers):
    """Views that show one number all over: `[*shape]` -> `uint8[*shape, 7, 7, 3]`."""
    numbers = np.asarray(numbers, np.uint8)
    return jnp.broadcast_to(numbers[..., None, None, None], (*numbers.shape, 7, 7, 3))


def trajectory(view, action, *, signal=(), extrinsic_reward=None, num_actions=2) -> Trajectory:
    """A trajectory `[T, N]` of views that show one number each, `[T + 1, N]`."""
    action = jnp.asarray(action, jnp.int32)
    nothing = jnp.zeros(action.shape)
    return Trajectory(
        view=views(view),
        first=jnp.zeros((len(view), action.shape[1]), bool),
        steps=Transition(
            action=action,
            logits=jnp.zeros((*action.shape, num_actions)),
            extrinsic_reward=nothing if extrinsic_reward is None else jnp.asarray(extrinsic_reward),
            terminated=nothing > 0,
            truncated=nothing > 0,
        ),
        signal=signal,
        initial_state=LSTMState(nothing[None, :1], nothing[None, :1]),
    )
