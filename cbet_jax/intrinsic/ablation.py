"""The other count rewards of the ablation (paper, appendix "Ablation Study on MiniGrid").

The study combines these, C-BET and Count with egocentric or panoramic states and changes
(`counts.states`, `counts.changes`), with and without resets (`counts.reset_probability`).
"""

import jax.numpy as jnp

from cbet_jax.config import RESET_PROBABILITY, TrainSettings
from cbet_jax.counts.resets import chosen_resets
from cbet_jax.intrinsic.count_based import CHANGES, STATES, CountReward, count_based
from cbet_jax.intrinsic.interface import Intrinsic

BOTH = (STATES, CHANGES)

# Formulas of N(s') and N(c).
REWARDS = {
    "ablation-states-squared": CountReward((STATES,), lambda states: 1 / states),
    "ablation-changes": CountReward((CHANGES,), lambda changes: 1 / jnp.sqrt(changes)),
    "ablation-product": CountReward(BOTH, lambda states, changes: 1 / jnp.sqrt(states * changes)),
    "ablation-sum": CountReward(
        BOTH, lambda states, changes: 0.5 / jnp.sqrt(states) + 0.5 / jnp.sqrt(changes)
    ),
    "ablation-sum-squared": CountReward(
        BOTH, lambda states, changes: (0.5 / jnp.sqrt(states) + 0.5 / jnp.sqrt(changes)) ** 2
    ),
    "ablation-sum-inside": CountReward(
        BOTH, lambda states, changes: 1 / jnp.sqrt(states + changes)
    ),
}


def ablation(name: str, settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return the method of that name, with the random resets of C-BET."""
    resets = chosen_resets(settings.counts, RESET_PROBABILITY)
    return count_based(name, REWARDS[name], settings, resets)
