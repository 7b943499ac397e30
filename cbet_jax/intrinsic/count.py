"""Count: reward rare states (Bellemare et al., 2016, with exact counts)."""

import jax.numpy as jnp

from cbet_jax.config import TrainSettings
from cbet_jax.counts.resets import chosen_resets
from cbet_jax.intrinsic.count_based import STATES, CountReward, Numbers, count_based
from cbet_jax.intrinsic.interface import Intrinsic


def count_reward(states: Numbers) -> Numbers:
    """Return 1 / sqrt(N(s')) (paper, appendix "Algorithms Details")."""
    return 1 / jnp.sqrt(states)


REWARD = CountReward((STATES,), count_reward)


def count(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return Count. It counts states, and never resets counts unless the settings say so."""
    return count_based("count", REWARD, settings, chosen_resets(settings.counts, 0.0))
