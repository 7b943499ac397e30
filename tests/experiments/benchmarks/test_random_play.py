"""Uniformly random play in the ten transfer environments, against what MiniGrid itself gives.

Measured with MiniGrid's own levels and rules: unique interactions an episode, over 100 episodes
a world, success ending the episode. On average 7.2, with success in 0.7 % of the episodes (the
paper's appendix has 7.40 and 0.9 % for an untrained network).
"""

import jax
import numpy as np
import pytest
from scipy.stats import norm

from cbet_jax.evaluate import evaluate_uniform
from envs.minigrid import make_world
from envs.minigrid.generators import TRANSFER

MINIGRID = {
    "Unlock": 3.4,
    "DoorKey-8x8": 7.9,
    "KeyCorridorS3R3": 5.9,
    "UnlockPickup": 4.0,
    "BlockedUnlockPickup": 11.8,
    "MultiRoom-N6": 0.3,
    "MultiRoom-N12-S10": 0.7,
    "ObstructedMaze-1Dlh": 4.7,
    "ObstructedMaze-2Dlh": 12.9,
    "ObstructedMaze-2Dlhb": 20.3,
}
THEIR_EPISODES, EPISODES = 100, 1000
ROUNDING = 0.05
LEVEL = 0.05


@pytest.mark.slow
def test_random_play_interacts_and_succeeds_as_in_minigrid():
    found = {name: play(name) for name in TRANSFER}
    surprise = {}
    for name, (interactions, _) in found.items():
        # Ours and theirs are both samples: episodes vary as much in theirs as in ours.
        error = interactions.std() * np.sqrt(1 / EPISODES + 1 / THEIR_EPISODES)
        distance = abs(interactions.mean() - MINIGRID[name]) - ROUNDING
        surprise[name] = 2 * norm.sf(max(distance, 0) / error)
        print(f"{name}: {interactions.mean():.2f}, minigrid {MINIGRID[name]}")
    assert min(surprise.values()) > LEVEL / len(TRANSFER), surprise
    mean = np.mean([interactions.mean() for interactions, _ in found.values()])
    variance = np.mean([interactions.var() for interactions, _ in found.values()]) / len(TRANSFER)
    assert abs(mean - 7.2) < 1.96 * np.sqrt(variance * (1 / EPISODES + 1 / THEIR_EPISODES))
    assert np.mean([success.mean() for _, success in found.values()]) == pytest.approx(
        0.007, abs=4e-3
    )


def play(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return unique interactions and success of each episode."""
    world = make_world((name,), EPISODES, explore=False)
    episodes = evaluate_uniform(world, jax.random.key(0), jax.random.key(1))
    return np.asarray(episodes.interactions), np.asarray(episodes.success)
