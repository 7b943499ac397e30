"""The benchmark: what it writes, what it refuses, and the operations it counts."""

import json
from dataclasses import replace

import pytest

from experiments import benchmark, benchmark_groups, measure
from experiments.presets import PRESETS
from tests.experiments.test_faults import refused

TINY = (
    *("--rounds", "1", "--worlds", "4", "--capacities", "16", "64", "--presets", "smoke"),
    *("--envs", "DoorKey-5x5"),
)
ONE_ENVIRONMENT = {"4 worlds", "minigrid", "xminigrid", "fresh levels", "compiling"}


@pytest.fixture
def no_waiting(monkeypatch):
    monkeypatch.setattr(measure, "ROUND_SECONDS", 0.0)


def test_the_paper_networks_operations():
    """The layers added up by hand; the authors' code takes about 36 million, too."""
    convolutions = 16 * 27 * 32 + 4 * 288 * 32 + 288 * 32
    dense = 32 * 1024 + 1024 * 1024
    lstm = 2 * 4 * 1024 * 2048
    heads = 1024 * 8
    flops = measure.forward_flops(PRESETS["paper"].train.network, (7, 7, 3), 7)
    assert flops == 2 * (convolutions + dense + lstm + heads)
    assert 35e6 < flops < 37e6


def test_every_group_is_measured_and_written(no_waiting, tmp_path, capsys, monkeypatch):
    path = tmp_path / "new" / "benchmark.json"
    small = replace(PRESETS["smoke"], environments=("Unlock",))
    monkeypatch.setitem(PRESETS, "smoke", small)
    monkeypatch.setattr(benchmark_groups, "MIXED", ("Unlock",))
    monkeypatch.setattr(benchmark_groups, "BOUNDED", ("Unlock",))
    benchmark.main([*TINY, "--out", str(path)])
    content = json.loads(path.read_text())
    rows = {row["what"]: row for row in content["rows"]}
    assert content["machine"]["packages"]["navix"] == "4.0.0"
    assert rows.pop("DoorKey-5x5, levels played twice")["value"] == 0
    assert all(row["value"] > 0 for row in rows.values())
    ours = rows["cbet-jax, 4 worlds"]
    expected = ours["value"] / rows["minigrid"]["value"]
    assert ours["ratios"]["minigrid"] == pytest.approx(expected)
    assert set(rows) >= {"navix, 4 worlds", "training, smoke preset", "compiling, smoke preset"}
    assert "count tables of 64 slots, 4 worlds" in rows
    of_one = {what.removeprefix("DoorKey-5x5, ") for what in rows if what.startswith("DoorKey")}
    assert of_one == ONE_ENVIRONMENT
    assert rows["DoorKey-5x5, 4 worlds"]["ratios"].keys() == {"minigrid", "xminigrid"}
    assert rows["Unlock, bytes moved"]["ratios"].keys() >= {"copying in memory"}
    assert "minigrid" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--groups", "speed"], "unknown group"),
        (["--presets", "lptop"], "laptop"),
        (["--envs", "DoorKey-8x9"], "square"),
        (["--rounds", "0"], "rounds"),
        (["--worlds", "-4"], "worlds"),
        (["--capacities", "100"], "power of two"),
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
