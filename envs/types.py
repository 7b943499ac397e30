"""The interface between worlds and the learner: `Step`, one record per step, and `World`.

A world is *batched at its own edge*: the learner sees `N` worlds at once, whether they are stepped
by one vmap (gridworlds) or one host callback (Habitat).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, UInt8, UInt32

# Metrics averaged over ended episodes; `episodes` counts these.
EPISODE_METRICS = ("success", "extrinsic_return", "episode_length", "interactions")
RESERVED_METRICS = ("episodes", *EPISODE_METRICS)  # names that no other metric may have


class Step(NamedTuple):
    """One time step of `N` worlds: the agents' views, and the results of their last actions.

    Where an episode ended, `view` and `panorama` already show the start of the next one; all other
    fields describe the action that ended it. Counts and the methods' networks read `view`; policies
    read `policy_view`.

    `panorama` may be any integers whose differences are equal exactly where the differences of the
    four views are: one integer per cell in gridworlds, pixels in Habitat.
    """

    view: UInt8[Array, "N height width 3"]  # the agent's egocentric view
    panorama: Integer[Array, "N numbers"]  # the views to the four fixed directions, for counting
    reward: Float[Array, " N"]  # extrinsic reward; in gridworlds at most once per episode
    success: Bool[Array, " N"]  # the action fulfilled the task (may be true again later)
    terminated: Bool[Array, " N"]  # the episode ended in a terminal state
    truncated: Bool[Array, " N"]  # the episode ended at its time limit
    length: Int[Array, " N"]  # steps played in the episode that the action belongs to
    environment: Int[Array, " N"]  # index of the action's environment
    interaction: UInt32[Array, "N 2"]  # hash of the full states (before, after) if the action
    # changed the world, else zeros
    #: the view that the action led to, before any reset; only `World.step_with_final` gives it
    final_view: UInt8[Array, "N height width 3"] | None = None
    #: what policies see, if not `view` (and `final_view`)
    other_view: UInt8[Array, "N rows columns 3"] | None = None
    other_final_view: UInt8[Array, "N rows columns 3"] | None = None

    @classmethod
    def without_task(
        cls,
        view: UInt8[Array, "*T N height width 3"],
        panorama: Integer[Array, "*T N numbers"],
        length: Int[Array, "*T N"],
        truncated: Bool[Array, "*T N"],
    ) -> "Step":
        """Return steps of one environment that has no task and does not say what changed in it."""
        shape, never = truncated.shape, jnp.zeros_like(truncated)
        first, unsaid = jnp.zeros(shape, jnp.int32), jnp.zeros((*shape, 2), jnp.uint32)
        reward = jnp.zeros(shape)
        return cls(view, panorama, reward, never, never, truncated, length, first, unsaid)

    @property
    def ended(self) -> Bool[Array, "*T N"]:
        """Whether the action ended the episode."""
        return self.terminated | self.truncated

    @property
    def reached(self) -> UInt8[Array, "*T N height width 3"]:
        """The view that the action led to; without `final_view`, `view`."""
        return self.view if self.final_view is None else self.final_view

    @property
    def policy_view(self) -> UInt8[Array, "*T N rows columns 3"]:
        """What policies see."""
        return self.view if self.other_view is None else self.other_view


@dataclass(frozen=True)
class World[State]:
    """`num_worlds` worlds played side by side; `State` is the type of their state.

    `step` resets a world when its episode ends. `refresh` runs between rollouts, for work in bulk
    such as drawing fresh levels.
    """

    init: Callable[[Any], tuple[State, Step]]  # takes a random key, or levels (`play_levels`)
    step: Callable[[State, Int[Array, " N"]], tuple[State, Step]]
    num_worlds: int
    num_actions: int
    view_shape: tuple[int, int, int]  # height, width, channels
    environments: tuple[str, ...]  # names; `Step.environment` indexes them
    max_steps: int  # steps of the longest episode
    refresh: Callable[[State], State] = lambda state: state
    #: metrics since the worlds began
    report: Callable[[State], dict[str, Float[Array, ""]]] = lambda state: {}
    unmeasured: tuple[str, ...] = ()  # members of `EPISODE_METRICS` without meaning here
    #: as `step`, with `Step.final_view` (None: unknown); played instead of it if that is read
    step_with_final: Callable[[State, Int[Array, " N"]], tuple[State, Step]] | None = None
    other_view_shape: tuple[int, int, int] | None = None  # of `Step.other_view`

    @property
    def policy_view_shape(self) -> tuple[int, int, int]:
        """The shape of what policies see."""
        return self.other_view_shape or self.view_shape

    def with_final_views(self) -> "World[State]":
        """Return the same worlds, whose steps have final views if these are known."""
        return replace(self, step=self.step_with_final or self.step)
