"""The benchmark: what it writes, and what it refuses."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from experiments import benchmark
from experiments.benchmarks import (
    gymnasium_measurements,
    random_play,
    timing,
    training_measurements,
    world_measurements,
)
from experiments.benchmarks.measurement import BenchmarkOptions, Measurement
from experiments.benchmarks.timing import TimedTask, Timings
from experiments.common.presets import PRESETS
from tests.support.refusal import refused
from tests.support.worlds import corridor

TINY = (
    *("--rounds", "1", "--worlds", "4", "--presets", "smoke", "--envs", "DoorKey-5x5"),
    *("--factors", "float32", "bfloat16", "--seeds", "1", "2"),
)
ONE_ENVIRONMENT = {"4 worlds", "minigrid", "fresh levels", "compiling"}


@pytest.fixture
def no_waiting(monkeypatch):
    monkeypatch.setattr(timing, "ROUND_SECONDS", 0.0)
    monkeypatch.setattr(timing, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(timing, "FEWEST_PAIRS", 1)


@pytest.fixture
def one_small_world(monkeypatch):
    for groups in (world_measurements, training_measurements):
        monkeypatch.setattr(groups, "MIXED", ("Unlock",))


def measured(path, groups):
    benchmark.main([*TINY, "--groups", *groups, "--out", str(path)])
    content = json.loads(path.read_text())
    return content, {row["what"]: row for row in content["rows"]}


@pytest.mark.slow
def test_an_environment_is_measured_and_written(no_waiting, tmp_path, capsys):
    content, rows = measured(tmp_path / "new" / "benchmark.json", ("environments",))
    assert content["machine"]["packages"]["navix"] == "4.0.0"
    assert all(row["value"] > 0 for row in rows.values())
    assert {what.removeprefix("DoorKey-5x5, ") for what in rows} == ONE_ENVIRONMENT
    ours = rows["DoorKey-5x5, 4 worlds"]
    assert ours["ratios"].keys() == {"minigrid"}
    expected = ours["value"] / rows["DoorKey-5x5, minigrid"]["value"]
    assert ours["ratios"]["minigrid"]["value"] == pytest.approx(expected)
    shown = capsys.readouterr().out
    assert "minigrid" in shown
    assert f"jax {jax.__version__}" in shown


@pytest.mark.slow
def test_worlds_and_training_are_measured(no_waiting, one_small_world, tmp_path):
    _, rows = measured(tmp_path / "benchmark.json", ("worlds", "training"))
    assert all(row["value"] > 0 for row in rows.values())
    ours = rows["cbet-jax, 4 worlds"]
    expected = ours["value"] / rows["minigrid"]["value"]
    assert ours["ratios"]["minigrid"]["value"] == pytest.approx(expected)
    first = "training, smoke preset, float32, seeds: 1"
    last = "training, smoke preset, bfloat16, seeds: 2"
    expected = rows[last]["value"] / rows[first]["value"]
    assert rows[last]["ratios"][first]["value"] == pytest.approx(expected)
    assert rows.keys() >= {"navix, 4 worlds", f"{last}, memory", f"{last}, compiling"}


@pytest.mark.slow
def test_vectors_are_measured_beside_envpools_of_the_same_size(no_waiting, tmp_path, monkeypatch):
    vectors = gymnasium_measurements.envs.minigrid.gym_vector
    pools = SimpleNamespace(
        make_gymnasium=lambda name, num_envs, num_threads: vectors(name, num_envs),
        __spec__=ModuleSpec("envpool", None),
    )
    monkeypatch.setitem(sys.modules, "envpool", pools)
    monkeypatch.setattr(gymnasium_measurements, "PROCESSES", (1,))
    monkeypatch.setattr(gymnasium_measurements, "FEW", (1,))
    _, rows = measured(tmp_path / "benchmark.json", ("gymnasium",))
    name, theirs = "KeyCorridorS3R3, gym_vector, {} environments", "envpool, {} environments"
    for number in (1, 4):
        ratios = rows[name.format(number)]["ratios"]
        assert ratios.keys() == {
            "AsyncVectorEnv of minigrid, 1 environments", theirs.format(number),
        }  # fmt: skip
        quotient = (
            rows[name.format(number)]["value"]
            / rows[f"KeyCorridorS3R3, {theirs.format(number)}"]["value"]
        )
        assert ratios[theirs.format(number)]["value"] == pytest.approx(quotient)


def test_processes_of_gymnasium_hear_no_ctrl_c():
    vector = gymnasium_measurements.processes(2)
    vector.reset()
    for process in vector.processes:
        os.kill(process.pid, signal.SIGINT)
        process.join(0.3)  # one that heard it has ended by then
    vector.step(np.zeros(2, np.int32))
    vector.close()
    assert [process.exitcode for process in vector.processes] == [0, 0]


MEASURE_WITHOUT_END = """
from experiments.benchmarks import gymnasium_measurements as measurements
from experiments.benchmarks.measurement import BenchmarkOptions
from experiments.common import cli

def play(tasks, rounds):
    print("playing", flush=True)
    while True:
        for task in tasks.values():
            task.run()

measurements.FEW, measurements.PROCESSES, measurements.take_turns = (), (4,), play
with cli.user_errors():
    measurements.measure_gymnasium(BenchmarkOptions(worlds=()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_all_processes_ends_those_of_gymnasium(number):
    """As a terminal sends Ctrl-C, and `timeout` sends SIGTERM."""
    words = [sys.executable, "-c", MEASURE_WITHOUT_END]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, start_new_session=True, **pipes) as process:
        assert process.stdout.readline() == "playing\n"
        time.sleep(0.2)
        os.killpg(process.pid, number)
        _, said = process.communicate(timeout=60)  # until no process can write there
    assert process.returncode == 128 + number
    assert not said


class Counted:
    """An environment, or several, whose steps are counted."""

    steps = 0

    def reset(self, **_):
        pass

    def step(self, actions):
        Counted.steps += np.size(actions)
        return None, 0.0, False, False, {}


def counted(task: TimedTask) -> int:
    """Return the steps of one run of a task."""
    before = Counted.steps
    task.run()
    return Counted.steps - before


def test_the_work_of_a_task_is_what_one_run_of_it_does(monkeypatch):
    """Each step of each environment, each level."""
    monkeypatch.setattr(random_play, "in_minigrid", lambda name: Counted)
    minigrid = random_play.minigrid_steps(("A", "B"))
    assert minigrid.amount == counted(minigrid) > 0
    vector = gymnasium_measurements.play(Counted(), 3, SimpleNamespace(signal=None))
    assert vector.amount == counted(vector) > 0
    ours = random_play.RandomPlay(corridor(3))
    _, rewards = jax.eval_shape(ours.play, jax.eval_shape(ours.start, jax.random.key(0)))
    monkeypatch.setattr(ours, "start", lambda key: None)
    assert ours.task().amount == rewards.size
    drawn = []
    monkeypatch.setattr(world_measurements, "sample_levels", lambda *given: drawn.append(given[2]))
    levels = world_measurements.levels("Unlock")
    levels.run()
    assert [levels.amount] == drawn


def test_the_work_of_training_is_the_frames_of_all_agents(monkeypatch):
    program = SimpleNamespace(
        init=jax.jit(lambda keys: keys),
        advance=jax.jit(lambda state: (state, ())),
        frames_per_iteration=20,
    )
    monkeypatch.setattr(training_measurements, "make_program", lambda *_, **__: program)
    training = training_measurements.Training(PRESETS["smoke"].train, 2, 3)
    assert training.task().amount == 2 * 3 * 20


def test_our_worlds_are_compared_with_navix_at_its_fastest(monkeypatch):
    speeds = {"minigrid": 2.0, "cbet-jax, 4 worlds": 8.0, "cbet-jax, 8 worlds": 40.0}
    speeds |= {"navix, 4 worlds": 5.0, "navix, 8 worlds": 4.0}
    for name in ("minigrid_steps", "navix_steps"):
        monkeypatch.setattr(random_play, name, lambda *_: None)
    players = SimpleNamespace(task=lambda: None)
    monkeypatch.setattr(world_measurements, "random_play_in", lambda *_: players)

    def take_turns(tasks, rounds):
        return Timings([{name: speeds[name] for name in tasks}] * 3)

    monkeypatch.setattr(timing, "take_turns", take_turns)
    rows = world_measurements.measure_worlds(BenchmarkOptions(worlds=(4, 8)))
    assert {row.what: row.value for row in rows} == speeds
    (ours,) = [row for row in rows if row.what == "cbet-jax, 8 worlds"]
    found = {name: ratio.value for name, ratio in ours.ratios.items()}
    assert found == {"minigrid": 20, "navix at its fastest": 8}


def test_what_was_measured_is_kept_when_stopped(tmp_path, monkeypatch):
    row = Measurement("an action", 3.0, "steps/s")

    def stopped(_):
        raise KeyboardInterrupt

    measures = {"worlds": lambda _: [row], "environments": lambda _: [row], "training": stopped}
    monkeypatch.setattr(benchmark, "measured", lambda: measures)
    path = tmp_path / "benchmark.json"
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        benchmark.main(["--groups", *measures, "--out", str(path)])
    assert [kept["what"] for kept in json.loads(path.read_text())["rows"]] == [row.what] * 2


def test_without_minigrid_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr(benchmark, "find_spec", {}.get)
    assert "extra `dev`" in refused(benchmark.main, [], capsys)


def test_a_file_is_never_overwritten(capsys, tmp_path):
    path = tmp_path / "benchmark.json"
    path.write_text("an older one")
    assert "exists already" in refused(benchmark.main, ["--out", str(path)], capsys)
    assert path.read_text() == "an older one"
