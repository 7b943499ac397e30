"""The rows of an evaluation's table."""

import numpy as np
import pytest

from cbet_jax.evaluate import Episodes
from experiments.evaluation import evaluation_table


def test_the_row_over_seeds_is_a_mean_of_seeds_and_its_success_stays_a_share():
    success = np.zeros((2, 10), bool)
    success[1, :5] = True
    numbers = np.stack([np.full(10, 3), np.full(10, 5)])
    actions = np.zeros((2, 10, 7), int)
    actions[0, :, 2] = 3  # one seed only goes forward, the other does so or turns left
    actions[1, :, (0, 2)] = 2
    episodes = Episodes(success, numbers, numbers, numbers / 10, actions)
    *_, over_seeds = evaluation_table.rows("cbet", 0, "KeyCorridorS3R3", episodes)
    assert (over_seeds.seed, over_seeds.episodes) == (evaluation_table.ALL, 20)
    assert over_seeds.success == (0.25, 0.0, 1.0)
    assert over_seeds.interactions.value == over_seeds.length.value == 4
    assert over_seeds.extrinsic_return.value == pytest.approx(0.4)
    assert over_seeds.actions == (0.25, 0, 0.75, 0, 0, 0, 0)
    assert over_seeds.entropy == pytest.approx(0.5 * np.log(2) / np.log(7))
