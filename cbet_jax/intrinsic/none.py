"""No intrinsic reward. The other methods replace the parts of this one that they need."""

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from cbet_jax.intrinsic.types import Intrinsic, Memory, Metrics, Params, Signal
from cbet_jax.types import Trajectory
from envs.types import Step


def none() -> Intrinsic:
    """Returns the method that remembers nothing, learns nothing and rewards nothing."""
    return Intrinsic("none", 0.0, _init, _begin, _observe, _reward, _loss, _report)


def _init(key: PRNGKeyArray, step: Step) -> tuple[Params, Memory]:
    return Params({}, {}), ()


def _begin(memory: Memory, key: PRNGKeyArray, step: Step) -> Memory:
    return memory


def _observe(memory: Memory, key: PRNGKeyArray, step: Step) -> tuple[Memory, Signal]:
    return memory, ()


def _reward(params: Params, trajectory: Trajectory) -> Float[Array, "T N"]:
    return jnp.zeros(trajectory.action.shape)


def _loss(params: Params, trajectory: Trajectory) -> tuple[Float[Array, ""], Metrics]:
    return jnp.zeros(()), {}


def _report(memory: Memory) -> Metrics:
    return {}
