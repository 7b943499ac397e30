"""The interface of an intrinsic-reward method: a record of pure functions."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray, UInt8

from cbet_jax.types import ArrayTree, SameType, Trajectory
from envs.types import Step

type Memory = ArrayTree  # a method's per-actor state, such as visit counts: arrays [N, ...]
type Signal = ArrayTree  # a method's record of a step, such as its counts: arrays [N, ...]
type Metrics = dict[str, Float[Array, ""]]
type Loss = tuple[Float[Array, ""], Metrics]  # and its terms

# Weights of the rewards (paper, appendix "Hyperparameter Details").
COUNT_COEFFICIENT = 0.005  # C-BET, Count and the ablation
EMBEDDING_COEFFICIENT = 0.1  # RND, Curiosity and RIDE


class Params(NamedTuple):
    """The parameters of a method's networks, by the network's name."""

    learnt: dict[str, ArrayTree]  # each network's gradient is clipped and applied separately
    fixed: dict[str, ArrayTree]  # not learnt, such as RND's target; `adapt` may change them


class Experience(NamedTuple):
    """One step of `N` actors, as a method observes it."""

    view: UInt8[Array, "N height width 3"]  # that the action was taken in
    action: Int[Array, " N"]
    step: Step  # what the action led to


def _no_state(key: PRNGKeyArray, step: Step) -> tuple[Params, Memory]:
    return Params({}, {}), ()


def _keep(memory: Memory, key: PRNGKeyArray, step: Step) -> Memory:
    return memory


def _no_signal(
    params: Params, memory: Memory, key: PRNGKeyArray, experience: Experience
) -> tuple[Memory, Signal]:
    return memory, ()


def _unchanged(params: Params, trajectory: Trajectory, mean: SameType) -> Params:
    return params


def _no_loss(params: Params, trajectory: Trajectory) -> Loss:
    return jnp.zeros(()), {}


def _no_metrics(memory: Memory) -> Metrics:
    return {}


class Intrinsic(NamedTuple):
    """An intrinsic-reward method. All but the first three fields have defaults.

    `begin_rollout` runs before each rollout, and sees the step that it begins with: the last one
    of the rollout before, once more. `observe` runs inside the acting loop, in the order of time,
    and sees each step of each actor once. The memory that they return is carried on, through all
    rollouts of the run. The parameters that `observe` sees stay the same within a rollout.
    `reward` and `loss` see whole trajectories: `signal[t]` is the record of the step that
    `action[t]` led to, whose view is `view[t + 1]` (after an episode's end, the next episode's
    first view).

    `observe_rollout` is an optional faster form of `observe` with the same results. If given, it
    runs once after each rollout, and `observe` does not run.

    `reward_and_loss` is an optional faster form of `reward` and `loss` with the same results, for
    methods whose networks serve both. If given, learning calls it in place of both: a method that
    is made of such a one with another `reward` or `loss` also needs another one, or None.

    `adapt` changes the fixed parameters before a batch is rewarded and learnt from, such as
    running means of what was seen. It sees one device's part of the batch; its last argument
    averages over the devices.
    """

    name: str
    coefficient: float  # weight of the reward
    reward: Callable[[Params, Trajectory], Float[Array, "T N"]]  # unweighted
    init: Callable[[PRNGKeyArray, Step], tuple[Params, Memory]] = _no_state
    begin_rollout: Callable[[Memory, PRNGKeyArray, Step], Memory] = _keep
    observe: Callable[[Params, Memory, PRNGKeyArray, Experience], tuple[Memory, Signal]] = (
        _no_signal
    )
    # Keys, experience and signals have a leading axis of time: [T, N, ...].
    observe_rollout: (
        Callable[[Params, Memory, Key[Array, " T"], Experience], tuple[Memory, Signal]] | None
    ) = None
    adapt: Callable[[Params, Trajectory, SameType], Params] = _unchanged
    #: the loss of the method's own networks, and its terms as metrics
    loss: Callable[[Params, Trajectory], Loss] = _no_loss
    reward_and_loss: Callable[[Params, Trajectory], tuple[Float[Array, "T N"], Loss]] | None = None
    metrics: Callable[[Memory], Metrics] = _no_metrics  # totals since the run began
    #: whether anything here reads `Step.panorama`: rooms render none that nobody reads
    panoramas: bool = True
