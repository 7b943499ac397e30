"""The rows of an evaluation's table."""

import numpy as np

from cbet_jax.evaluate import Episodes
from experiments import evaluation_table


def test_the_row_over_seeds_is_a_mean_of_seeds_and_its_success_stays_a_share():
    success = np.zeros((2, 10), bool)
    success[1, :5] = True
    numbers = np.stack([np.full(10, 3), np.full(10, 5)])
    episodes = Episodes(success, numbers, numbers, numbers.astype(float), numbers[..., None])
    *_, over_seeds = evaluation_table.rows("cbet", 0, "KeyCorridorS3R3", episodes)
    assert (over_seeds.seed, over_seeds.episodes) == (evaluation_table.ALL, 20)
    assert over_seeds.success == (0.25, 0.0, 1.0)
    assert over_seeds.interactions.value == 4
