"""The table of walks: its rows, its file, its bars."""

import csv

import numpy as np
import pytest

from envs.habitat.simulator import FloorMap
from experiments.evaluation import walk_table
from experiments.evaluation.walk_table import WalkConditions, Walked, of_policies, panels, rows

FLOOR = FloorMap((0.0, 0.0), 0.1, np.ones((2, 2), bool), np.zeros((2, 2, 3), np.uint8))


def walking(*distinct: int) -> np.ndarray:
    """Return an episode of four moments for each number of distinct positions."""
    places = np.zeros((len(distinct), 4, 2))
    for episode, number in enumerate(distinct):
        places[episode, :, 0] = np.minimum(np.arange(4), number - 1)
    return places


WALKED = Walked(
    "studio",
    FLOOR,
    {
        "cbet": {5: walking(2, 4), 6: walking(4, 4)},
        "untrained": {5: walking(1, 1)},
        "uniform": {0: walking(2, 2)},
    },
)


def test_several_seeds_have_a_row_together():
    table = list(rows(WALKED))
    assert [(row.policy, row.seed, row.episodes) for row in table] == [
        *(("cbet", "5", 2), ("cbet", "6", 2), ("cbet", "all", 4)),
        *(("untrained", "5", 2), ("uniform", "0", 2)),
    ]
    five, six, both, nothing, random = table
    assert (five.positions.value, six.positions.value) == (3.0, 4.0)
    assert (both.positions.value, both.together, both.times_uniform) == (3.5, 4.0, 1.75)
    width = 12.7062 / 2  # Student's t of one degree of freedom, times the standard error
    assert both.positions.high == pytest.approx(3.5 + width, rel=1e-4)
    assert (nothing.times_uniform, random.times_uniform) == (0.5, 1.0)


def test_bars_are_those_of_all_seeds():
    table = [*rows(WALKED), *rows(WALKED._replace(scene="bedroom"))]
    assert {scene for scene, _ in of_policies(table)} == {"studio", "bedroom"}
    for bars in panels(table).values():
        assert list(bars) == ["cbet", "untrained", "uniform"]
        assert {len(each) for each in bars.values()} == {2}  # scenes
    means = panels(table)["distinct positions an episode"]["cbet"]
    assert [bar.value for bar in means] == [3.5, 3.5]


def test_the_file_says_after_how_many_frames(tmp_path):
    path = tmp_path / "habitat-evaluation.csv"
    conditions = WalkConditions("raycast", 4, False, {"cbet": 1000}, 7)
    walk_table.save(path, list(rows(WALKED)), conditions)
    with open(path) as file:
        table = list(csv.DictReader(file))
    assert [row["checkpoint_frames"] for row in table] == ["1000"] * 3 + ["0"] * 2
    assert {row["evaluation_seed"] for row in table} == {"7"}
    assert table[2]["positions_of_all_episodes"] == "4"
