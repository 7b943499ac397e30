"""The other count rewards of the ablation study (paper, appendix "Ablation Study on MiniGrid").

The study combines them, C-BET and Count with egocentric or panoramic states and changes and
with or without resets: `counts.states`, `counts.changes` and `counts.reset_probability`.
"""

import jax.numpy as jnp

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

BOTH = (STATES, CHANGES)

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


def ablation(name: str, settings: CountSettings, extent: Extent = SHORT) -> Intrinsic:
    """Returns a count reward of the ablation, with random resets."""
    return counting_with_resets(name, REWARDS[name], settings, extent, RESET_PROBABILITY)
