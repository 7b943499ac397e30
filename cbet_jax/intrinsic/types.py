"""The interface of an intrinsic-reward method: a record of pure functions."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from cbet_jax.types import ArrayTree, Trajectory
from envs.types import Step

type Memory = ArrayTree  # a method's per-actor state, such as visit counts: arrays [N, ...]
type Signal = ArrayTree  # a method's record of a step, such as its counts: arrays [N, ...]
type Metrics = dict[str, Float[Array, ""]]

# Weights of the rewards (paper, appendix "Hyperparameter Details").
COUNT_COEFFICIENT = 0.005  # C-BET, Count and the ablation
EMBEDDING_COEFFICIENT = 0.1  # RND, Curiosity and RIDE


class Params(NamedTuple):
    """The parameters of a method's networks, by the network's name."""

    learnt: dict[str, ArrayTree]  # each network's gradient is clipped and applied separately
    fixed: dict[str, ArrayTree]  # never updated, such as RND's target


def _no_state(key: PRNGKeyArray, step: Step) -> tuple[Params, Memory]:
    return Params({}, {}), ()


def _keep(memory: Memory, key: PRNGKeyArray, step: Step) -> Memory:
    return memory


def _no_signal(memory: Memory, key: PRNGKeyArray, step: Step) -> tuple[Memory, Signal]:
    return memory, ()


def _no_loss(params: Params, trajectory: Trajectory) -> tuple[Float[Array, ""], Metrics]:
    return jnp.zeros(()), {}


def _no_metrics(memory: Memory) -> Metrics:
    return {}


class Intrinsic(NamedTuple):
    """An intrinsic-reward method. All but the first three fields have defaults.

    `begin_rollout` and `observe` run inside the acting loop, in the order of time, and see each
    step of each actor once. `reward` and `loss` see whole trajectories: `signal[t]` is the record
    of the step that `action[t]` led to, whose view is `view[t + 1]` (after an episode's end, the
    next episode's first view).

    `observe_rollout` is an optional faster form of `observe` with the same results. If given, it
    runs once after each rollout, and `observe` does not run.
    """

    name: str
    coefficient: float  # weight of the reward
    reward: Callable[[Params, Trajectory], Float[Array, "T N"]]  # unweighted
    init: Callable[[PRNGKeyArray, Step], tuple[Params, Memory]] = _no_state
    begin_rollout: Callable[[Memory, PRNGKeyArray, Step], Memory] = _keep
    observe: Callable[[Memory, PRNGKeyArray, Step], tuple[Memory, Signal]] = _no_signal
    # Keys, steps and signals have a leading axis of time: [T, N, ...].
    observe_rollout: Callable[[Memory, Key[Array, " T"], Step], tuple[Memory, Signal]] | None = None
    #: the loss of the method's own networks, and its terms as metrics
    loss: Callable[[Params, Trajectory], tuple[Float[Array, ""], Metrics]] = _no_loss
    metrics: Callable[[Memory], Metrics] = _no_metrics  # totals since the run began
