"""What every world gives the learner: one record a step, and the functions that make it.

A world is *batched at its own edge*: the learner sees `N` worlds at once and never
asks how they are stepped (one vmap for gridworlds, one host callback for Habitat).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxtyping import Array, Bool, Float, Int, Integer, UInt8, UInt32

# The metrics that are means over the episodes that ended; `episodes` says how many those were.
EPISODE_METRICS = ("success", "extrinsic_return", "episode_length", "interactions")


class Step(NamedTuple):
    """One moment of `N` worlds: what the agents see, and what their last action brought.

    Where an episode ended, `view` and `panorama` already show the first moment of the
    next one, while all else speaks of the action that ended it.

    `panorama` may be any integers whose differences are equal exactly where the differences
    of the four views are: a gridworld gives one integer a cell, Habitat its pixels.
    """

    view: UInt8[Array, "N height width 3"]  # what the agent sees in front of itself
    panorama: Integer[Array, "N numbers"]  # the views to the four fixed directions, for counting
    reward: Float[Array, " N"]  # extrinsic reward; of gridworlds at most once an episode
    success: Bool[Array, " N"]  # the action fulfilled the task (may be true again later)
    terminated: Bool[Array, " N"]  # the episode ended in a terminal state
    truncated: Bool[Array, " N"]  # the episode ended at its time limit
    length: Int[Array, " N"]  # steps played in the episode that the action belongs to
    environment: Int[Array, " N"]  # index of the environment the action was played in
    interaction: UInt32[Array, "N 2"]  # key of the pair of full states (before, after) where the
    # action changed the world, zeros elsewhere


@dataclass(frozen=True)
class World[State]:
    """`num_worlds` worlds played side by side; `State` is the type of their state.

    `step` resets a world by itself when its episode ends. `refresh` is called between
    rollouts, outside the step, for whatever a world does in bulk, such as drawing fresh levels.
    """

    init: Callable[[Any], tuple[State, Step]]  # of a random key, or of levels (`play_levels`)
    step: Callable[[State, Int[Array, " N"]], tuple[State, Step]]
    refresh: Callable[[State], State]
    report: Callable[[State], dict[str, Float[Array, ""]]]  # metrics since the worlds began
    num_worlds: int
    num_actions: int
    view_shape: tuple[int, int, int]  # height, width, channels
    environments: tuple[str, ...]  # names; `Step.environment` indexes them
    max_steps: int  # of the longest episode
    unmeasured: tuple[str, ...] = ()  # of `EPISODE_METRICS`: what means nothing in these worlds
