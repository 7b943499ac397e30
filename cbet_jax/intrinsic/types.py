"""What an intrinsic-reward method is: a record of pure functions."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array, Float, PRNGKeyArray

from cbet_jax.types import Trajectory
from envs.types import Step

Memory = Any  # what the method remembers of each actor's past, arrays [N, ...]
Params = Any  # the method's networks; an empty tuple if it has none
Signal = Any  # what it notes of each step, arrays [N, ...]


class Intrinsic(NamedTuple):
    """An intrinsic-reward method.

    `begin` and `observe` run inside the acting loop, in the order of time, and see each
    step of each actor once; `reward` and `loss` see whole trajectories.
    """

    name: str
    init: Callable[[PRNGKeyArray, Step], tuple[Params, Memory]]
    begin: Callable[[Memory, PRNGKeyArray, Step], Memory]  # when a sequence starts
    observe: Callable[[Memory, PRNGKeyArray, Step], tuple[Memory, Signal]]
    reward: Callable[[Params, Trajectory], Float[Array, "T N"]]  # before the coefficient
    loss: Callable[[Params, Trajectory], Float[Array, ""]]  # zero if there are no networks
    report: Callable[[Memory], dict[str, Float[Array, ""]]]  # metrics since the run began
