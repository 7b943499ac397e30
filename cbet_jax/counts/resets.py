"""When visit counts are reset: at random steps (C-BET), never, or at an episode's end (RIDE).

A rule only chooses the tables. `count_based` applies it, and `table.reset` empties the tables.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PRNGKeyArray

from cbet_jax.config import CountSettings, SettingsError
from envs.types import Step

# Chooses the tables to reset after a step; the last argument is the shape of the mask.
ResetMask = Callable[[PRNGKeyArray, Step, tuple[int, int]], Bool[Array, "kinds tables"]]


class Resets(NamedTuple):
    """A rule for resetting count tables."""

    mask: ResetMask
    never: bool = False  # no table is ever reset, so tables must be larger


def chosen_resets(settings: CountSettings, probability: float) -> Resets:
    """Return the rule of settings: at an episode's end if `episodic`, else at random.

    Args:
        settings: of counts.
        probability: the method's p (`random_resets`).

    Raises:
        SettingsError: the settings ask for episodic counts that outlive an episode.
    """
    if not settings.episodic:
        return random_resets(settings, probability)
    return within_episodes("counts.episodic", settings, at_success=False)


def within_episodes(who: str, settings: CountSettings, *, at_success: bool) -> Resets:
    """Return the rule of RIDE and NovelD: reset an actor's tables when its episode ends.

    By then the view that followed has been counted, and is forgotten too.

    Args:
        who: the method or setting, for a message.
        settings: of counts.
        at_success: also reset at a success. C-BET's published code resets RIDE's counts whenever
            the simulator says "done", which includes every success in pre-training.

    Raises:
        SettingsError: the settings ask for counts that outlive an episode.
    """
    if settings.shared or settings.reset_probability is not None:
        raise SettingsError(
            f"{who} counts within an episode: leave counts.shared and counts.reset_probability out"
        )

    def mask(key: PRNGKeyArray, step: Step, shape: tuple[int, int]) -> Bool[Array, "kinds tables"]:
        ended = step.ended | step.success if at_success else step.ended
        return jnp.broadcast_to(ended, shape)

    return Resets(mask)


def random_resets(settings: CountSettings, probability: float) -> Resets:
    """Return the rule of C-BET: reset each table independently with a probability p at each step.

    Paper, section 3.2: random resets keep the reward from vanishing, and p is at most one minus
    the discount.

    Args:
        settings: may set p (`reset_probability`), or p = 0 (`random_resets` is false).
        probability: the method's p.
    """
    if not settings.random_resets:
        probability = 0.0
    if settings.reset_probability is not None:
        probability = settings.reset_probability
    # A traced probability is above 0, since the setting is a `Switch`.
    is_zero = isinstance(probability, float | int) and probability == 0

    def mask(key: PRNGKeyArray, step: Step, shape: tuple[int, int]) -> Bool[Array, "kinds tables"]:
        return jax.random.bernoulli(key, probability, shape)

    return Resets(mask, never=is_zero)
