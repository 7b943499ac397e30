"""C-BET: rare states and rare changes of the world (paper, equation 1)."""

from cbet_jax.config import CountSettings
from cbet_jax.intrinsic.count_based import (
    CHANGES,
    RESET_PROBABILITY,
    SHORT,
    STATES,
    CountReward,
    Extent,
    counting_with_resets,
)
from cbet_jax.intrinsic.types import Intrinsic

REWARD = CountReward((STATES, CHANGES), lambda states, changes: 1 / (states + changes))


def cbet(settings: CountSettings, extent: Extent = SHORT) -> Intrinsic:
    """Returns the C-BET method: reward 1 / (N(s') + N(c)), counts reset at random."""
    return counting_with_resets("cbet", REWARD, settings, extent, RESET_PROBABILITY)
