"""Count: rare states (Bellemare et al., 2016, with exact counts)."""

import jax.numpy as jnp

from cbet_jax.config import CountSettings
from cbet_jax.intrinsic.count_based import SHORT, STATES, CountReward, Extent, counting_with_resets
from cbet_jax.intrinsic.types import Intrinsic

REWARD = CountReward((STATES,), lambda states: 1 / jnp.sqrt(states))


def count(settings: CountSettings, extent: Extent = SHORT) -> Intrinsic:
    """Returns the Count baseline: reward 1 / sqrt(N(s')), counts never reset."""
    return counting_with_resets("count", REWARD, settings, extent, 0.0)
