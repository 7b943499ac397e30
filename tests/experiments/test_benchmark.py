"""The benchmark: what it writes, and what it refuses."""

import json
from dataclasses import replace

import pytest

from experiments import benchmark
from experiments.benchmarks import (
    gymnasium_measurements,
    timing,
    training_measurements,
    world_measurements,
)
from experiments.common.presets import PRESETS
from tests.support.refusal import refused

TINY = (
    *("--rounds", "1", "--worlds", "4", "--capacities", "16", "64", "--presets", "smoke"),
    *("--envs", "DoorKey-5x5", "--factors", "bfloat16"),
)
SCALED = ("--scaled", "smoke", "--scaled-seeds", "1", "2", "--scaled-worlds", "8")
PHASES = {
    *(f"acting: {part}" for part in ("network", "rules", "resets and views", "counts")),
    *("acting: fresh levels", "acting: all else"),
    *("learning: forward", "learning: backward", "learning: optimizer", "an iteration"),
}
ONE_ENVIRONMENT = {"4 worlds", "minigrid", "xminigrid", "fresh levels", "compiling"}


@pytest.fixture
def no_waiting(monkeypatch):
    monkeypatch.setattr(timing, "ROUND_SECONDS", 0.0)
    monkeypatch.setattr(timing, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(timing, "FEWEST_PAIRS", 1)


@pytest.fixture
def one_small_world(monkeypatch):
    small = replace(PRESETS["smoke"], environments=("Unlock",))
    monkeypatch.setitem(PRESETS, "smoke", small)
    for groups in (world_measurements, training_measurements):
        monkeypatch.setattr(groups, "MIXED", ("Unlock",))
    monkeypatch.setattr(world_measurements, "BOUNDED", ("Unlock",))


def measured(path, groups):
    benchmark.main([*TINY, *SCALED, "--groups", *groups, "--out", str(path)])
    content = json.loads(path.read_text())
    return content, {row["what"]: row for row in content["rows"]}


@pytest.mark.slow
def test_the_phases_of_training_and_how_it_scales(no_waiting, one_small_world, tmp_path):
    _, rows = measured(tmp_path / "benchmark.json", ("phases", "scaling"))
    prefix = "smoke, bfloat16, "
    of_training = {w.removeprefix(prefix): rows.pop(w) for w in [*rows] if w.startswith(prefix)}
    assert of_training.keys() == PHASES
    assert {"smoke preset, 2 seeds", "smoke preset, 8 worlds, memory of all devices"} <= rows.keys()
    assert all(row["value"] > 0 for row in rows.values())


@pytest.mark.slow
def test_an_environment_is_measured_and_written(no_waiting, tmp_path, capsys):
    content, rows = measured(tmp_path / "new" / "benchmark.json", ("environments",))
    assert content["machine"]["packages"]["navix"] == "4.0.0"
    assert rows.pop("DoorKey-5x5, levels played twice")["value"] == 0
    assert all(row["value"] > 0 for row in rows.values())
    assert {what.removeprefix("DoorKey-5x5, ") for what in rows} == ONE_ENVIRONMENT
    ours = rows["DoorKey-5x5, 4 worlds"]
    assert ours["ratios"].keys() == {"minigrid", "xminigrid"}
    expected = ours["value"] / rows["DoorKey-5x5, minigrid"]["value"]
    assert ours["ratios"]["minigrid"]["value"] == pytest.approx(expected)
    assert "minigrid" in capsys.readouterr().out


@pytest.mark.slow
def test_gymnasiums_environments_are_measured(no_waiting, tmp_path, monkeypatch):
    monkeypatch.setattr(gymnasium_measurements, "WORLD", "DoorKey-5x5")
    monkeypatch.setattr(gymnasium_measurements, "PROCESSES", (1,))
    _, rows = measured(tmp_path / "benchmark.json", ("gymnasium",))
    ours, theirs = rows["DoorKey-5x5, gym_vector, 4 environments"], "AsyncVectorEnv of minigrid, 1"
    (ratio,) = ours["ratios"].values()
    (peer,) = (row["value"] for what, row in rows.items() if theirs in what)
    assert ratio["value"] == pytest.approx(ours["value"] / peer)


@pytest.mark.slow
def test_other_groups_are_measured_and_written(no_waiting, one_small_world, tmp_path):
    groups = ("worlds", "bounds", "counts", "training", "compilation")
    _, rows = measured(tmp_path / "benchmark.json", groups)
    assert all(row["value"] > 0 for row in rows.values())
    ours = rows["cbet-jax, 4 worlds"]
    expected = ours["value"] / rows["minigrid"]["value"]
    assert ours["ratios"]["minigrid"]["value"] == pytest.approx(expected)
    assert set(rows) >= {
        "navix, 4 worlds",
        "training, smoke preset, bfloat16",
        "training, smoke preset, bfloat16, memory of all devices",
        "compiling, smoke preset",
    }
    assert "count tables of 64 slots, 4 worlds" in rows
    assert rows["Unlock, bytes moved"]["ratios"].keys() >= {"copying in memory"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--groups", "speed"], "unknown group"),
        (["--presets", "lptop"], "laptop"),
        (["--envs", "DoorKey-8x9"], "square"),
        (["--rounds", "0"], "rounds"),
        (["--worlds", "-4"], "worlds"),
        (["--capacities", "100"], "power of two"),
        (["--scaled", "lptop"], "laptop"),
        (["--scaled-worlds", "33"], "do not divide"),
        (["--scaled-seeds", "0"], "seeds"),
    ],
)
def test_bad_command_lines_are_refused(arguments, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert expected in refused(benchmark.main, arguments, capsys)
    assert not list(tmp_path.iterdir())


def test_a_file_is_never_overwritten(capsys, tmp_path):
    path = tmp_path / "benchmark.json"
    path.write_text("an older one")
    assert "exists already" in refused(benchmark.main, ["--out", str(path)], capsys)
    assert path.read_text() == "an older one"
