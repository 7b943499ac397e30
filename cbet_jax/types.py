"""The records that pass between acting and learning. Time is the first axis, worlds the second."""

from typing import NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt8

from cbet_jax.settings.ranges import SettingsError
from envs.types import Step

type ArrayTree = PyTree[Array]  # records, dictionaries and tuples of arrays; empty ones, too
type RecurrentState = PyTree[Float[Array, "..."]]  # state of an agent: arrays [layers, N, units]
type Metrics = dict[str, Float[Array, "..."]]


@runtime_checkable
class SameType(Protocol):
    """A function from any tree to a tree of the same type."""

    def __call__[T](self, tree: T, /) -> T:
        """Call the function."""


def unchanged[T](tree: T) -> T:
    """Return `tree`."""
    return tree


def joined[T](*parts: dict[str, T]) -> dict[str, T]:
    """Return the metrics of several parts of a run.

    Raises:
        SettingsError: two of them have the same name.
    """
    metrics: dict[str, T] = {}
    for part in parts:
        if twice := metrics.keys() & part.keys():
            raise SettingsError(f"two metrics have the name {', '.join(sorted(twice))}: rename one")
        metrics |= part
    return metrics


class LSTMState(NamedTuple):
    """The recurrent state of `N` agents, one pair a layer."""

    hidden: Float[Array, "layers N units"]
    cell: Float[Array, "layers N units"]


class Transition(NamedTuple):
    """One step of `N` agents: what they did, and what followed."""

    action: Int[Array, " N"]
    logits: Float[Array, "N actions"]  # what the policy that acted gave
    extrinsic_reward: Float[Array, " N"]
    terminated: Bool[Array, " N"]  # the value of what follows is zero
    truncated: Bool[Array, " N"]  # what follows belongs to another episode
    prior: Float[Array, "N actions"] | None = None  # weighted logits of the frozen policy, if any
    #: the view that the action led to, if it is read
    final_view: UInt8[Array, "N height width 3"] | None = None
    other_final_view: UInt8[Array, "N rows columns 3"] | None = None  # as in `Step`

    @property
    def ended(self) -> Bool[Array, "*T N"]:
        """Whether the episode ended."""
        return self.terminated | self.truncated


def strays(steps: Step | Transition) -> Bool[Array, "*T N"]:
    """Return where `reached` is another episode's view: at ends whose final view is not given."""
    return steps.ended if steps.final_view is None else jnp.zeros_like(steps.ended)


class Trajectory(NamedTuple):
    """`T` steps of `N` worlds.

    `view[t]` is what the agent saw when it chose `steps.action[t]`. `view[T]` is the view that
    the next sequence begins with.
    """

    view: UInt8[Array, "T+1 N height width 3"]
    first: Bool[Array, "T+1 N"]  # the recurrent state is zeroed before this view is read
    steps: Transition  # arrays [T, N, ...]
    signal: ArrayTree  # what the intrinsic method observed, arrays [T, N, ...]
    initial_state: RecurrentState  # before view[0] is read
    other_view: UInt8[Array, "T+1 N rows columns 3"] | None = None  # as in `Step`

    @property
    def reached(self) -> UInt8[Array, "T N height width 3"]:
        """The views that the actions led to; without final views, `view[1:]`."""
        return self.view[1:] if self.steps.final_view is None else self.steps.final_view

    def as_policies_see(self) -> "Trajectory":
        """Return the trajectory with what policies see as its views."""
        if self.other_view is None:
            return self
        final = self.steps.other_final_view
        steps = self.steps._replace(final_view=final, other_final_view=None)
        return self._replace(view=self.other_view, other_view=None, steps=steps)
