"""No intrinsic reward: the agent learns from the task's reward only."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic.interface import Intrinsic, Params
from cbet_jax.types import Trajectory


def zero(params: Params, trajectory: Trajectory) -> Float[Array, "T N"]:
    """Return a reward of 0 at every step."""
    return jnp.zeros(trajectory.steps.action.shape)


NONE = Intrinsic("none", coefficient=0.0, reward=zero, panoramas=False)


def none(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return the method without a reward."""
    return NONE
