"""The table of an evaluation: its rows, what is printed, and the picture."""

import csv
import io

import numpy as np
import pytest
from rich.console import Console

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
    assert (over_seeds.seed, over_seeds.episodes) == (evaluation_table.ALL_SEEDS, 20)
    measured = over_seeds.measured
    assert measured["success_rate"] == (0.25, 0.0, 1.0)
    assert measured["unique_interactions"].value == measured["episode_length"].value == 4
    assert measured["extrinsic_return"].value == pytest.approx(0.4)
    assert over_seeds.actions == (0.25, 0, 0.75, 0, 0, 0, 0)
    assert over_seeds.entropy == pytest.approx(0.5 * np.log(2) / np.log(7))


def test_seeds_that_fail_alike_are_no_more_certain_than_their_levels():
    numbers = np.ones((3, 50))
    none = Episodes(np.zeros((3, 50), bool), *[numbers] * 3, np.ones((3, 50, 7), int))
    first, *_, over_seeds = evaluation_table.rows("cbet", 0, "KeyCorridorS3R3", none)
    assert over_seeds.measured["success_rate"] == first.measured["success_rate"]


WORLDS = ("Unlock", "MultiRoom-N6")


@pytest.fixture(scope="module")
def table() -> list[evaluation_table.EvaluationRow]:
    """Two policies in two worlds; the better one has two seeds."""
    rows = []
    for number, world in enumerate((*WORLDS, evaluation_table.ALL_WORLDS)):
        for policy, seeds in (("cbet", 2), ("uniform", 1)):
            numbers = np.full((seeds, 4), 10 * seeds + number)
            actions = np.ones((seeds, 4, 7), int)
            episodes = Episodes(numbers > 20, numbers, numbers, numbers / 10, actions)
            rows += evaluation_table.rows(policy, 0, world, episodes)
    return rows


def printed(table, width=80) -> list[str]:
    file = io.StringIO()
    evaluation_table.show(Console(file=file, width=width), table, "runs/first, 900 frames")
    return [
        " ".join(line.split()) for line in file.getvalue().splitlines() if line.strip(" \u2500")
    ]


def test_all_worlds_come_first_and_policies_are_columns(table):
    assert printed(table) == [
        "runs/first, 900 frames [95 % intervals]:",
        "an episode cbet uniform",
        "unique interactions",
        "all worlds 22.0 12.0",
        "Unlock 20.0 10.0",
        "MultiRoom-N6 21.0 11.0",
        "success rate",
        "all worlds 1.00 [0.51, 1.00] 0.00 [0.00, 0.49]",
        "Unlock 0.00 [0.00, 0.49] 0.00 [0.00, 0.49]",
        "MultiRoom-N6 1.00 [0.51, 1.00] 0.00 [0.00, 0.49]",
    ]


def test_what_is_not_measured_is_left_out(tmp_path):
    """Success and interactions of other libraries' environments; their returns are shown."""
    numbers = np.arange(8.0).reshape(2, 4)
    episodes = Episodes(numbers > 9, 0 * numbers, numbers, numbers, np.ones((2, 4, 2), int))
    rows = evaluation_table.rows("cbet", 0, "cart", episodes, ("interactions", "success"))
    assert printed(rows)[2:] == ["return", "cart 3.50 [-21.91, 28.91]"]
    some = evaluation_table.rows("cbet", 0, "cart", episodes, ("interactions",))
    assert printed(some)[2:5] == ["success rate", "cart 0.00 [0.00, 0.49]", "return"]
    saved, picture = evaluation_table.write(tmp_path, rows, {"0": 300, "1": 900}, 0)
    with open(saved, newline="") as file:
        for row in csv.DictReader(file):
            assert row["success_rate"] == row["unique_interactions_low"] == ""
            assert row["checkpoint_frames"] == ("300" if row["seed"] == "0" else "900")
            assert float(row["extrinsic_return"]) == float(row["episode_length"]) > 0
    assert picture.exists()
    by_chance = evaluation_table.rows(evaluation_table.UNIFORM, 0, "cart", episodes)
    evaluation_table.save(tmp_path / "both.csv", [*rows, *by_chance], {"0": 300, "1": 900}, 0)
    with open(tmp_path / "both.csv", newline="") as file:
        frames = [row["checkpoint_frames"] for row in csv.DictReader(file)]
    assert frames == ["300", *["900"] * 5]


def test_frames_that_differ_are_said_from_the_fewest_to_the_most():
    assert evaluation_table.span([8000, 3200, 8000]) == "3,200 to 8,000"
    assert evaluation_table.span([80, 80]) == "80"


def test_equal_seeds_have_the_interval_of_their_levels_whatever_rounding_makes_of_their_mean():
    success = np.arange(100) < np.full((3, 1), 10)  # the mean of three 0.1 is not 0.1
    ones = np.ones((3, 100))
    episodes = Episodes(success, ones, ones, ones, np.ones((3, 100, 7)))
    *_, over_seeds = evaluation_table.rows("cbet", 0, "Unlock", episodes)
    assert over_seeds.measured["success_rate"].text(2) == "0.10 [0.06, 0.17]"


def test_each_measure_is_of_its_own_numbers():
    ones = np.ones((1, 4))
    episodes = Episodes(ones > 0, 2 * ones, 3 * ones, 4 * ones, np.ones((1, 4, 7)))
    (row,) = evaluation_table.rows("cbet", 0, "Unlock", episodes)
    assert {name: found.value for name, found in row.measured.items()} == {
        **{"success_rate": 1, "unique_interactions": 2},
        **{"episode_length": 3, "extrinsic_return": 4},
    }
