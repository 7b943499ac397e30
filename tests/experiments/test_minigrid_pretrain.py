"""The experiments' mains with tiny numbers, through the real compiled program."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import product
from pathlib import Path

import jax
import numpy as np
import pytest

import envs.minigrid
from cbet_jax.program import seed_keys
from cbet_jax.runs import checkpoint, metrics_table
from cbet_jax.runs.directory import RunDirectory
from experiments import minigrid_evaluate, minigrid_pretrain
from experiments.common import endings, gridworlds, opening
from experiments.evaluation.evaluation_table import ALL_WORLDS
from experiments.watching import film_command as command
from tests.support.evaluated import EPISODES, WORLDS
from tests.support.refusal import refused
from tests.support.saved_runs import save_run
from tests.support.tiny import (
    ARGUMENTS,
    CHUNK_FRAMES,
    FRAMES,
    SEEDS,
    numbers,
    pretrained,
    saved_frames,
)

PRETRAIN = [sys.executable, "-m", "experiments.minigrid_pretrain"]
WORLD = ("--envs", "DoorKey-5x5")
SHORT_FRAMES = 80
SHORT_RUN = (
    *(*ARGUMENTS, "--seeds", "1", "--frames", str(SHORT_FRAMES), "--unroll", "5"),
    *("--counts.capacity", "256", "--network.dense-units", "8", "--network.lstm-units", "8"),
    *("--envs", "Unlock", "DoorKey-5x5", "--lockstep"),
)
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> RunDirectory:
    """A run that was never interrupted."""
    root = tmp_path_factory.mktemp("finished")
    rare = ("--checkpoint-seconds", "1000")
    minigrid_pretrain.main([*SHORT_RUN, "--out", str(root), *rare])
    return RunDirectory(root)


def final_state(directory: RunDirectory) -> dict[str, np.ndarray]:
    settings = directory.settings()
    init = gridworlds.build(settings).init
    template = jax.eval_shape(init, seed_keys(settings.seeds, settings.first_seed))
    loaded = checkpoint.load_newest(directory.checkpoints, template)
    return numbers(loaded.state)


def ended_by(number: int, directory: RunDirectory, *arguments: str) -> int:
    """Start a run, send it a signal after some checkpoints, and return its exit status.

    It has one device, as the runs of this process have.
    """
    before = saved_frames(directory)
    process = subprocess.Popen(
        [*PRETRAIN, "--out", str(directory.root), "--devices", "1", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 200
    while max(saved_frames(directory), default=0) < max(before, default=0) + 3 * CHUNK_FRAMES:
        assert process.poll() is None, "the run ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, number)
    return process.wait(timeout=60)


def test_a_run_leaves_all_that_it_should(finished):
    assert finished.settings().seeds == 1
    session = json.loads(finished.manifest.read_text())["sessions"][0]
    assert session["packages"]["jax"] == jax.__version__
    assert session["compile_seconds"] > 0
    assert session["frames"] == SHORT_FRAMES
    assert session["frames_per_second"] > 0
    table = metrics_table.read(finished.metrics)
    assert sorted(table["entropy"]) == [0]
    assert table["entropy"][0].frames[-1] == SHORT_FRAMES
    for name in ("", *(f"/{environment}" for environment in finished.settings().environments)):
        assert max(table[f"levels_replayed{name}"][0].values) < 0.01
    assert saved_frames(finished) == [SHORT_FRAMES]
    for name in ("learning_curves.png", "diagnostics.png"):
        assert (finished.figures / name).read_bytes().startswith(PNG)


def test_a_run_ends_with_a_film(tmp_path, capsys, monkeypatch):
    options, _ = opening.read(minigrid_pretrain.EXPERIMENT, ["--preset", "smoke"])
    assert options.film
    explored = []

    def make_world(names, number, *, explore):
        explored.append(explore)
        return envs.minigrid.make_world(names, number, explore=False)  # as other tests watch it

    monkeypatch.setattr(command, "make_world", make_world)
    run = save_run(tmp_path)
    monkeypatch.setattr(minigrid_pretrain, "FILM_STEPS", 2)
    make = partial(minigrid_pretrain.film, options, run.root)
    (film,) = endings.draw_film(run, make)
    assert explored == [True]
    assert film == run.root / "watch.gif"
    assert film.read_bytes().startswith(b"GIF8")
    assert f"saved: {film} (3 frames)" in capsys.readouterr().out


@pytest.mark.slow  # a study's kills and interrupted runs are tested by default
def test_a_killed_run_ends_with_the_same_numbers_bit_for_bit(tmp_path):
    rare = ("--checkpoint-seconds", "1000")
    unbroken_run, directory = (RunDirectory(tmp_path / name) for name in ("unbroken", "killed"))
    minigrid_pretrain.main([*ARGUMENTS, *WORLD, "--out", str(unbroken_run.root), *rare])
    assert ended_by(signal.SIGKILL, directory, *ARGUMENTS, *WORLD) == -signal.SIGKILL
    resume = ("--resume", "--checkpoint-seconds", "0")
    assert ended_by(signal.SIGINT, directory, *resume) == 130
    assert saved_frames(directory)[-1] < FRAMES
    minigrid_pretrain.main(["--out", str(directory.root), "--resume"])
    assert directory.metrics.read_bytes() == unbroken_run.metrics.read_bytes()
    resumed, unbroken = final_state(directory), final_state(unbroken_run)
    assert resumed.keys() == unbroken.keys()
    for name, value in unbroken.items():
        assert resumed[name].tobytes() == value.tobytes(), name


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path) as file:
        return list(csv.DictReader(file))


def test_an_evaluation_leaves_a_table_and_a_picture(tmp_path, capsys):
    run = pretrained(tmp_path)
    words = ("--episodes", str(EPISODES), "--envs", *WORLDS)
    minigrid_evaluate.main([str(run.root), *words])
    shown = capsys.readouterr().out
    rows = rows_of(run.root / "evaluation.csv")
    seeds = [*map(str, range(SEEDS)), "all"]
    policies = [*product(("cbet", "untrained"), seeds), ("uniform", "0")]
    assert [(row["environment"], row["method"], row["seed"]) for row in rows] == [
        (world, *policy) for world in (*WORLDS, ALL_WORLDS) for policy in policies
    ]
    for row in rows:
        low, value, high = (
            float(row[f"unique_interactions{end}"]) for end in ("_low", "", "_high")
        )
        assert low <= value <= high
        assert row["environment"] in shown
        assert row["checkpoint_frames"] == str(saved_frames(run)[-1])
    assert (run.root / "evaluation.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--envs", "KeyCoridorS3R3"], "KeyCorridorS3R3"),
        (["--episodes", "0"], "episodes must be at least 1"),
        (["--envs"], "--envs names nothing"),
        (["--checkpoint", "17"], f"there: {SHORT_FRAMES}"),
        (["nowhere"], "holds no run"),
        (["--episdes", "3"], "--episodes"),
    ],
)
def test_bad_evaluations_of_a_run_are_refused(arguments, expected, finished, capsys):
    error = refused(minigrid_evaluate.main, [str(finished.root), *arguments], capsys)
    assert expected in error
