"""The benchmark: what it writes, what it refuses, and the operations it counts."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

from envs.minigrid import make_world
from experiments import benchmark
from experiments.benchmarks import measure, phases
from experiments.benchmarks import worlds as benchmark_worlds
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
SPEEDS = ("network", "rules", "worlds", "counted", "fresh", "acting", "forward", "gradient")
SPEEDS += ("learning", "iteration")
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


def test_the_bytes_of_products():
    def program(left, right, image, kernel):
        turn = lambda left, _: (left @ right, None)  # noqa: E731
        turned = jax.lax.scan(turn, left, length=5)[0]
        drawn = jax.lax.conv(image, kernel, (1, 1), "VALID")
        return jax.jit(lambda: 2 * (turned @ right))(), drawn

    left, right = jnp.ones((3, 4), jnp.bfloat16), jnp.ones((4, 4), jnp.bfloat16)
    image, kernel = jnp.ones((1, 2, 5, 5)), jnp.ones((6, 2, 3, 3))
    found = measure.product_bytes(program, left, right, image, kernel)
    product, convolution = 2 * (12 + 16 + 12), 4 * (50 + 108 + 54)
    assert found == 6 * product + convolution


def test_the_bytes_of_an_iteration():
    """Acting reads the recurrent weights at every step; backward is two products for one."""
    settings = PRESETS["smoke"].train
    world = make_world(("Unlock",), settings.worlds, explore=True)
    parts, whole = phases.phases(dict.fromkeys(SPEEDS, 1.0), settings, world)
    moved = {part.name.split(": ")[1]: part.bytes for part in parts if part.bytes}
    worlds = {"rules", "resets and views", "counts"}
    assert moved.keys() == {"network", "forward", "backward", "optimizer", *worlds}
    recurrent = 4 * (4 * settings.network.lstm_units**2)  # bytes of the weights
    steps = settings.iteration_frames // settings.worlds
    assert moved["network"] > steps * recurrent
    assert moved["forward"] < moved["backward"] < 2 * moved["forward"]  # no gradient of views
    assert whole.bytes == sum(moved.values())


@pytest.fixture
def one_small_world(monkeypatch):
    small = replace(PRESETS["smoke"], environments=("Unlock",))
    monkeypatch.setitem(PRESETS, "smoke", small)
    for groups in (benchmark_worlds, benchmark_training):
        monkeypatch.setattr(groups, "MIXED", ("Unlock",))
    monkeypatch.setattr(benchmark_worlds, "BOUNDED", ("Unlock",))


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


def test_phases_are_differences_of_programs():
    world = make_world(("Unlock",), 8, explore=True)
    took = {"network": 2, "rules": 1, "worlds": 3, "counted": 4, "fresh": 6, "acting": 9}
    took |= {"forward": 5, "gradient": 15, "learning": 14, "iteration": 30}
    settings = PRESETS["smoke"].train
    parts, whole = phases.phases({name: 1 / s for name, s in took.items()}, settings, world)
    seconds = [round(part.seconds, 9) for part in parts]
    assert seconds == [2, 1, 2, 1, 2, 1, 5, 10, 0]  # the last would be negative
    assert {part.name for part in (*parts, whole)} == PHASES
    products = [part.operations for part in parts if part.unit == phases.FLOP]
    assert sum(products) == whole.operations > 0
    worlds = {part.name: part.operations for part in parts if part.unit == phases.OPERATION}
    assert min(worlds.values()) > 0
    assert worlds["acting: resets and views"] > 5 * worlds["acting: rules"]  # of sight
    optimized = worlds["learning: optimizer"] / settings.updates
    assert 5 < optimized / 10_000 < 50  # some operations for each of the network's weights


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
    assert ours["ratios"]["minigrid"] == pytest.approx(expected)
    assert "minigrid" in capsys.readouterr().out


@pytest.mark.slow
def test_other_groups_are_measured_and_written(no_waiting, one_small_world, tmp_path):
    groups = ("worlds", "bounds", "counts", "training", "compilation")
    _, rows = measured(tmp_path / "benchmark.json", groups)
    assert all(row["value"] > 0 for row in rows.values())
    ours = rows["cbet-jax, 4 worlds"]
    expected = ours["value"] / rows["minigrid"]["value"]
    assert ours["ratios"]["minigrid"] == pytest.approx(expected)
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
