"""The table of walks: its rows, its file, its bars."""

import csv

import numpy as np
import pytest
from rich.console import Console

from envs.habitat.simulator import FloorMap
from experiments.evaluation import walk_pictures, walk_table
from experiments.evaluation.walk_table import WalkConditions, rows, with_means
from experiments.evaluation.walks import Walked

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
    table = with_means(rows(WALKED))
    assert [(row.policy, row.seed, row.episodes) for row in table] == [
        *(("cbet", "5", 2), ("cbet", "6", 2), ("cbet", "all", 4)),
        *(("untrained", "5", 2), ("uniform", "0", 2)),
    ]
    five, six, both, nothing, random = table
    assert (five.positions.value, six.positions.value) == (3.0, 4.0)
    assert (both.positions.value, both.together) == (3.5, 4.0)
    width = 12.7062 / 2  # Student's t of one degree of freedom, times the standard error
    assert both.positions.high == pytest.approx(3.5 + width, rel=1e-4)
    assert (nothing.positions.value, random.positions.value) == (1.0, 2.0)


def test_the_mean_of_scenes_is_as_wide_as_they_are():
    bedroom = WALKED._replace(
        scene="bedroom", places={**WALKED.places, "cbet": {5: walking(1, 3), 6: walking(4, 4)}}
    )
    table = with_means([*rows(WALKED), *rows(bedroom)])
    five, six, both = (row for row in table if (row.scene, row.policy) == ("all", "cbet"))
    assert (five.positions.value, six.positions.value, both.positions.value) == (2.5, 4.0, 3.25)
    assert (five.episodes, both.episodes) == (4, 8)
    one = 12.7062  # Student's half width of each scene: a standard error of 1
    assert five.positions.high == pytest.approx(2.5 + one, rel=1e-4)
    assert six.positions.low == six.positions.high == 4.0
    assert both.positions.high == pytest.approx(3.25 + one * 0.75, rel=1e-4)


def test_a_summary_says_how_policies_differ_from_the_first(capsys):
    seeds = {5: walking(1, 1), 6: walking(3, 3)}
    places = {**WALKED.places, "count": seeds}
    walk_table.show(Console(width=120), with_means(rows(WALKED._replace(places=places))), "runs/x")
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("runs/x; distinct positions an episode, studio")
    (count,) = (line for line in shown if line.startswith("  count"))
    assert "difference from cbet -1.5 [" in count  # 2 and 3.5
    assert not any("difference" in line for line in shown if line != count)


def test_the_file_says_after_how_many_frames(tmp_path):
    path = tmp_path / "habitat-evaluation.csv"
    conditions = WalkConditions("raycast", 4, False, {"cbet": 1000}, 7)
    walk_table.save(path, with_means(rows(WALKED)), conditions)
    with open(path) as file:
        table = list(csv.DictReader(file))
    assert [row["checkpoint_frames"] for row in table] == ["1000"] * 3 + ["0"] * 2
    assert {row["evaluation_seed"] for row in table} == {"7"}
    assert table[2]["positions_of_all_episodes"] == "4"


def test_no_name_is_taken_for_mathematics(tmp_path):
    walked = Walked("$s", FLOOR, {"cost$a_$": {5: walking(2)}})
    assert walk_pictures.heat_maps(tmp_path / "maps.png", [walked], "where").exists()


def test_episodes_of_lost_simulators_are_told():
    places = walking(4, 4)
    assert "cut" not in walk_table.line(Walked("studio", FLOOR, {"cbet": {5: places}}))
    places[1, 2:] = np.nan
    shown = walk_table.line(Walked("studio", FLOOR, {"cbet": {5: places}}))
    assert shown.endswith("(1 episodes were cut short: their simulators were lost)")
