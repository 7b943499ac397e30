"""Pre-training in Habitat, from the command line to the numbers on disk."""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from rich.console import Console

from cbet_jax.config import AuxiliarySettings
from cbet_jax.networks.embedding import Embedding
from cbet_jax.runs import checkpoint, metrics_table
from cbet_jax.runs.directory import RunDirectory
from envs.habitat.simulator import PUBLISHED_AGENT, VIEW_SHAPE, AgentSize
from experiments import habitat_pretrain, minigrid_evaluate, minigrid_pretrain
from experiments.common import habitat, opening
from experiments.common.presets import HABITAT_PRESETS
from experiments.common.training_options import Asked
from tests.support.own_simulator import OWN
from tests.support.refusal import refused
from tests.support.tiny import CHUNK_FRAMES, HABITAT_ARGUMENTS, HABITAT_FRAMES, saved_frames


def final_state(directory: RunDirectory) -> dict[str, np.ndarray]:
    """Return every array that a run ended with, by its name."""
    return checkpoint.read_arrays(checkpoint.checkpoints(directory.checkpoints)[-1])[0]


def test_a_run_leaves_what_a_run_in_gridworlds_does(habitat_run) -> None:
    assert saved_frames(habitat_run)[-1] == HABITAT_FRAMES
    table = metrics_table.read(habitat_run.metrics)
    positions = table["positions"][0].values
    assert (np.diff(positions) >= 0).all()
    assert positions[-1] > 2
    assert not table["episodes_cut"][0].values.any()
    assert np.unique(table["episode_length/walls"][0].values).tolist() == [7]
    actors = habitat_run.settings().train.worlds
    assert table["episodes"][0].values.sum() == actors * (HABITAT_FRAMES // actors // 7)
    assert table.keys().isdisjoint(("interactions", "success", "extrinsic_return"))  # mean nothing
    assert (habitat_run.figures / "learning_curves.png").is_file()
    (session,) = json.loads(habitat_run.manifest.read_text())["sessions"]
    assert 0 < session["time_in_simulators"] < 1
    assert session["simulator_steps_per_second"] > 0


@pytest.mark.slow
def test_a_resumed_run_ends_with_the_same_numbers_bit_for_bit(habitat_run, tmp_path) -> None:
    settings = habitat_run.settings()
    died = RunDirectory(tmp_path / "run")
    died.create(settings)
    saved = checkpoint.path_at(habitat_run.checkpoints, 2 * CHUNK_FRAMES)
    shutil.copytree(saved, died.checkpoints / saved.name)
    died.metrics.write_bytes(habitat_run.metrics.read_bytes())
    habitat_pretrain.main(["--out", str(died.root), "--resume", "--no-film"])
    assert died.metrics.read_bytes() == habitat_run.metrics.read_bytes()
    assert saved_frames(died)[-1] == HABITAT_FRAMES
    resumed, unbroken = final_state(died), final_state(habitat_run)
    assert resumed.keys() == unbroken.keys()
    for name, value in unbroken.items():
        assert resumed[name].tobytes() == value.tobytes(), name


def test_runs_in_rooms_and_in_gridworlds_are_told_apart(habitat_run, capsys, tmp_path) -> None:
    rooms = str(habitat_run.root)
    resume = ["--resume", "--out", rooms]
    others = {"--shared-start": "habitat.shared_start", "--scene=studio": "environments"}
    for word, said in others.items():
        assert said in refused(habitat_pretrain.main, [*resume, word], capsys)
    told = {minigrid_pretrain.main: resume, minigrid_evaluate.main: [rooms]}
    for main, arguments in told.items():
        assert "is a run of pre-training in Habitat, not" in refused(main, arguments, capsys)
    RunDirectory(tmp_path).create(replace(habitat_run.settings(), habitat=None))
    error = refused(habitat_pretrain.main, ["--resume", "--out", str(tmp_path)], capsys)
    assert "is a run of pre-training, not pre-training in Habitat" in error


def test_help_shows_the_options_that_name_scene_and_simulator(capsys) -> None:
    with pytest.raises(SystemExit):
        habitat_pretrain.main(["--help"])
    shown = capsys.readouterr().out
    for option in ("--scene STR", "--simulator STR", "--simulator-python ", "habitat_sim"):
        assert option in shown


def children(pid: int) -> set[int]:
    """Return the processes that a process has started, of those that are still there."""
    with contextlib.suppress(OSError):
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return {int(child) for each in threads for child in (each / "children").read_text().split()}
    return set()


@pytest.mark.slow
@pytest.mark.parametrize("scene", ["fine", "always_dead"])
def test_a_run_that_is_stopped_or_fails_leaves_no_process(scene, tmp_path) -> None:
    command = [sys.executable, "-m", "experiments.habitat_pretrain", *HABITAT_ARGUMENTS]
    own = ("--simulator", OWN, "--scene", scene, "--out", str(tmp_path / "run"))
    process = subprocess.Popen(
        [*command, *own, "--frames", "10000000"], stderr=subprocess.PIPE, text=True
    )
    started: set[int] = set()
    stopped, deadline = False, time.monotonic() + 120
    while process.poll() is None:
        assert time.monotonic() < deadline
        started |= children(process.pid)
        if not stopped and saved_frames(RunDirectory(tmp_path / "run")):
            process.send_signal(signal.SIGINT)
            stopped = True
        time.sleep(0.02)
    error = process.stderr.read()
    if scene == "fine":
        assert (process.returncode, error) == (130, "")
    else:
        assert process.returncode == 2
        assert error.count("\n") == 1, error
        assert "was lost 3 times in a row" in error
    assert started
    until = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in started):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_presets_are_those_of_the_published_code() -> None:
    paper = HABITAT_PRESETS["paper"].train
    assert (paper.worlds, paper.frames, paper.rollouts, paper.updates) == (4, 2_000_000, 8, 1)
    assert (paper.network.conv_layers, paper.network.channels) == (5, 32)
    assert paper.network.brightest == 255
    assert (paper.counts.keys, paper.counts.offsets) == ("ternary", "uniform")
    fresh, _ = opening.read(habitat_pretrain.EXPERIMENT, ["--preset", "smoke"])
    agent = habitat.process_settings("studio", fresh.habitat, None).agent
    assert agent == PUBLISHED_AGENT == AgentSize(0.1, 1.5)
    for preset in HABITAT_PRESETS.values():
        assert preset.train.auxiliary == AuxiliarySettings(channels=(32,) * 5)
        view = jax.ShapeDtypeStruct((1, 1, *VIEW_SHAPE), np.uint8)
        module = Embedding(preset.train.auxiliary.channels)
        embedded, _ = jax.eval_shape(module.init_with_output, jax.random.key(0), view)
        assert embedded.shape[-1] == 128


@pytest.mark.parametrize(("method", "drawn"), [("cbet", True), ("rnd", False)])
def test_panoramas_are_drawn_where_they_are_counted(method, drawn, monkeypatch):
    asked = []

    def start(process, number):
        asked.append(process.panoramas)
        raise InterruptedError

    monkeypatch.setattr(habitat, "simulators", start)
    words = ["--preset", "smoke", "--method", method]
    options, _ = opening.read(habitat_pretrain.EXPERIMENT, words)
    given = [Asked(options, None, ())], Console()
    with pytest.raises(InterruptedError), habitat_pretrain.opened(*given):
        pass
    assert asked == [drawn]
