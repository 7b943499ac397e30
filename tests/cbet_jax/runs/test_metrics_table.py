"""The table of metrics: by hand."""

import csv

import numpy as np
import pytest

from cbet_jax.runs import metrics_table, reading
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.directory import RunDirectoryError

NAN = np.nan


def chunk(*rows) -> dict[str, np.ndarray]:
    return {"b": np.array(rows, np.float32), "a": -np.array(rows, np.float32)}


def test_rows_are_in_order_and_have_data(tmp_path):
    path = tmp_path / "metrics.csv"
    with metrics_table.table(path, first_seed=5, position=Position()) as table:
        length = table.append(chunk([0.1, NAN], [2, 3]), frames=100, frames_per_iteration=10)
    assert path.read_text() == (
        "seed,frames,name,value\n"
        "5,110,a,-0.1\n5,110,b,0.1\n"
        "5,120,a,-2.0\n5,120,b,2.0\n6,120,a,-3.0\n6,120,b,3.0\n"
    )
    assert length == path.stat().st_size


def test_a_table_is_cut_back_to_the_checkpoint(tmp_path):
    path = tmp_path / "metrics.csv"
    with metrics_table.table(path, 0, Position()) as table:
        position = Position(1, 10, table.append(chunk([1, 2]), 0, 10), table.digest)
        table.append(chunk([3, 4]), 10, 10)
    unbroken = path.read_bytes()
    with open(path, "a") as file:
        file.write("0,30,a,")
    with metrics_table.table(path, 0, position) as table:
        table.append(chunk([3, 4]), 10, 10)
    assert path.read_bytes() == unbroken
    path.write_bytes(unbroken[:40])
    with (
        pytest.raises(RunDirectoryError, match=r"metrics\.csv is damaged"),
        metrics_table.table(path, 0, position),
    ):
        pass


def test_values_are_read_back_exactly(tmp_path):
    values = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32) * 1e-3
    with metrics_table.table(tmp_path / "m.csv", 3, Position()) as table:
        table.append({"x": values}, 0, 10)
    read = metrics_table.read(tmp_path / "m.csv")["x"]
    assert sorted(read) == [3, 4]
    assert np.array_equal(read[4].values.astype(np.float32), values[:, 1])
    assert np.array_equal(read[4].frames, np.arange(1, 51) * 10)


def test_names_may_have_commas(tmp_path):
    """A world is named after its file; any reader of CSV files gets the name."""
    name = 'interactions/"my", map.py:make'
    with metrics_table.table(tmp_path / "m.csv", 0, Position()) as table:
        table.append({name: np.ones((1, 1)), "x": np.ones((1, 1))}, 0, 10)
    assert metrics_table.read(tmp_path / "m.csv").keys() == {name, "x"}
    with open(tmp_path / "m.csv", newline="") as file:
        assert {row["name"] for row in csv.DictReader(file)} == {name, "x"}
    with open(tmp_path / "m.csv", "a") as file:
        file.write("0,10,my, map,1\n")
    with pytest.raises(RunDirectoryError, match="damaged in line 4"):
        metrics_table.read(tmp_path / "m.csv")


def test_a_mean_of_episodes_knows_how_many_they_were(tmp_path):
    chunk = {
        "success": np.array([[1, NAN, 0.5]]).T,
        "episodes": np.array([[2.0, 0, 6]]).T,
        "success/A": np.array([[NAN, NAN, 1]]).T,
        "episodes/A": np.array([[0.0, 0, 3]]).T,
        "entropy": np.array([[1.0, 2, 3]]).T,
    }
    with metrics_table.table(tmp_path / "m.csv", 0, Position()) as table:
        table.append(chunk, 0, 10)
        table.append({"success": np.ones((1, 1))}, 30, 10)
    assert metrics_table.means(chunk) == {
        "success": 0.625,
        "success/A": 1,
        "episodes": 8 / 3,
        "episodes/A": 1,
        "entropy": 2,
    }
    read = metrics_table.read(tmp_path / "m.csv")
    np.testing.assert_array_equal(read["success/A"][0].weights, [3])
    np.testing.assert_array_equal(read["entropy"][0].weights, [1, 1, 1])
    # Not all numbers of episodes are known.
    assert read["success"][0].episodes is None
    assert read["episodes"][0].episodes is None


def test_a_mean_without_episodes_is_that_of_its_values():
    """Such as of a method's own metric, in a chunk in which no episode ended."""
    chunk = {"success": np.array([[1.0], [3.0]]), "episodes": np.zeros((2, 1))}
    assert metrics_table.means(chunk)["success"] == 2


def test_numbers_that_are_not_finite_are_left_out(tmp_path):
    path = tmp_path / "metrics.csv"  # of a run that diverged
    path.write_text(metrics_table.HEADER + "0,10,loss,2.0\n0,20,loss,inf\n0,20,entropy,nan\n")
    table = metrics_table.read(path)
    assert {name: column[0].values.tolist() for name, column in table.items()} == {"loss": [2.0]}


def test_a_long_runs_table_may_be_of_any_size(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST_BYTES", 100)
    with metrics_table.table(tmp_path / "m.csv", 0, Position()) as table:
        table.append({"x": np.ones((100, 1))}, 0, 10)
    assert len(metrics_table.read(tmp_path / "m.csv")["x"][0].frames) == 100
