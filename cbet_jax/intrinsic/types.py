"""What an intrinsic-reward method is: a record of pure functions."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array, Float, Key, PRNGKeyArray

from cbet_jax.types import Trajectory
from envs.types import Step

Memory = Any  # what the method remembers of each actor's past, arrays [N, ...]
Signal = Any  # what it notes of each step, arrays [N, ...]
Metrics = dict[str, Float[Array, ""]]


class Params(NamedTuple):
    """A method's networks, by name; none at all where it only counts."""

    learnt: dict[str, Any]  # each is clipped and stepped by itself
    fixed: dict[str, Any]  # as drawn when the run began


class Intrinsic(NamedTuple):
    """An intrinsic-reward method.

    `begin` and `observe` run inside the acting loop, in the order of time, and see each
    step of each actor once; `reward` and `loss` see whole trajectories, in which `view[t + 1]`
    is what `signal[t]` was noted of (after an episode's end, the next one's first view).
    `observe_all` comes to the same as `observe` of one step after the other, for a method that
    sees many at once for less; then it runs after the loop, and `observe` not at all.
    """

    name: str
    coefficient: float  # of the reward
    init: Callable[[PRNGKeyArray, Step], tuple[Params, Memory]]
    begin: Callable[[Memory, PRNGKeyArray, Step], Memory]  # when a sequence starts
    observe: Callable[[Memory, PRNGKeyArray, Step], tuple[Memory, Signal]]
    reward: Callable[[Params, Trajectory], Float[Array, "T N"]]  # before the coefficient
    loss: Callable[[Params, Trajectory], tuple[Float[Array, ""], Metrics]]  # and its terms
    report: Callable[[Memory], Metrics]  # metrics since the run began
    # Of steps [T, N, ...], signals likewise:
    observe_all: Callable[[Memory, Key[Array, " T"], Step], tuple[Memory, Signal]] | None = None
