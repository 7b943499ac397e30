"""C-BET: reward rare states and rare changes of the world (paper, section 3.1)."""

from cbet_jax.config import RESET_PROBABILITY, TrainSettings
from cbet_jax.counts.resets import chosen_resets
from cbet_jax.intrinsic.count_based import CHANGES, STATES, CountReward, Numbers, count_based
from cbet_jax.intrinsic.interface import Intrinsic


def cbet_reward(states: Numbers, changes: Numbers) -> Numbers:
    """Return 1 / (N(s') + N(c)) (paper, equation 1)."""
    return 1 / (states + changes)


REWARD = CountReward((STATES, CHANGES), cbet_reward)


def cbet(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return C-BET. It counts states and changes, and resets counts at random steps.

    Each actor counts for itself. At every step, its state counts and its change counts are reset
    independently, each with probability 0.001 (paper, section 3.2; appendix on hyperparameters).
    """
    return count_based("cbet", REWARD, settings, chosen_resets(settings.counts, RESET_PROBABILITY))
