"""The interface of an intrinsic-reward method: a record of pure functions."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray, UInt8

from cbet_jax.types import ArrayTree, SameType, Trajectory
from envs.types import Step

type Memory = ArrayTree  # a method's per-actor state, such as visit counts: arrays [N, ...]
type Signal = ArrayTree  # a method's record of a step, such as its counts: arrays [N, ...]
type Metrics = dict[str, Float[Array, ""]]
type Loss = tuple[Float[Array, ""], Metrics]  # the loss and its terms
type Reward = Float[Array, "T N"]

# Weights of the rewards (paper, appendix "Hyperparameter Details").
COUNT_COEFFICIENT = 0.005  # C-BET, Count and the ablation
EMBEDDING_COEFFICIENT = 0.1  # RND, Curiosity and RIDE


class Params(NamedTuple):
    """The parameters of a method's networks, by the network's name."""

    learnt: dict[str, ArrayTree]  # each network's gradient is clipped and applied separately
    fixed: dict[str, ArrayTree]  # not learnt, such as RND's target; `adapt` may change them


class Experience(NamedTuple):
    """One step of `N` actors, as a method observes it, or a rollout, with arrays [T, N, ...]."""

    view: UInt8[Array, "N height width 3"]  # view before the action
    action: Int[Array, " N"]
    step: Step  # what the action led to


# Observes a rollout: keys, experience and signals have a leading axis of time.
type Observe = Callable[[Params, Memory, Key[Array, " T"], Experience], tuple[Memory, Signal]]


def each_step(
    observe: Callable[[Params, Memory, PRNGKeyArray, Experience], tuple[Memory, Signal]],
) -> Observe:
    """Return a function that observes a rollout, from one that observes a step."""

    def observe_rollout(
        params: Params, memory: Memory, keys: Key[Array, " T"], experience: Experience
    ) -> tuple[Memory, Signal]:
        def observe_next(memory: Memory, now: tuple[PRNGKeyArray, Experience]) -> Any:
            return observe(params, memory, *now)

        return jax.lax.scan(observe_next, memory, (keys, experience))

    return observe_rollout


def each_actor[X, Y](function: Callable[[X], Y], actors: X) -> Y:
    """Apply a function to each actor of arrays [N, ...]: on a CPU to one after the other.

    What one actor remembers then stays in the processor's cache through the whole rollout.
    """
    in_turn = partial(jax.lax.map, function)
    return jax.lax.platform_dependent(actors, cpu=in_turn, default=jax.vmap(function))


class Intrinsic(NamedTuple):
    """An intrinsic-reward method. All but the first three fields have defaults.

    `begin_rollout` runs before each rollout, and sees the last step of the rollout before once
    more. `observe` runs after each rollout, and sees its steps in the order of time; `each_step`
    makes it from a function of one step. The memory that they return is carried through the run.

    `reward` sees whole trajectories: `signal[t]` is the record of the step that `action[t]` led to,
    whose view is `view[t + 1]` (after an episode's end, the next episode's first view; `reached[t]`
    is the final one, if the method has `final_views` and the world gives them). It returns the
    reward, unweighted. A method whose networks learn returns a pair: the reward, through which no
    gradient flows, and their loss with a dict of its terms.

    `adapt` changes fixed parameters, such as running means, before a batch is rewarded and learnt
    from. It sees one device's part of the batch; its last argument averages over the devices.
    """

    name: str
    coefficient: float  # weight of the reward
    reward: Callable[[Params, Trajectory], Reward | tuple[Reward, Loss]]
    init: Callable[[PRNGKeyArray, Step], tuple[Params, Memory]] = lambda *_: (Params({}, {}), ())
    begin_rollout: Callable[[Memory, PRNGKeyArray, Step], Memory] = lambda memory, *_: memory
    observe: Observe = lambda params, memory, *_: (memory, ())
    adapt: Callable[[Params, Trajectory, SameType], Params] = lambda params, *_: params
    metrics: Callable[[Memory], Metrics] = lambda _: {}  # totals since the run began
    #: whether the method reads `Step.panorama`; if not, rooms do not render it
    panoramas: bool = True
    #: whether worlds are asked for the views in which episodes end
    final_views: bool = False

    def reward_and_loss(self, params: Params, trajectory: Trajectory) -> tuple[Reward, Loss]:
        """Return the reward and the loss of the networks (0 without networks)."""
        found = self.reward(params, trajectory)
        return found if isinstance(found, tuple) else (found, (jnp.zeros(()), {}))
