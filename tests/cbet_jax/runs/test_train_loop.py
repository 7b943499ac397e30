"""The host's loop around a stand-in for the compiled program."""

import itertools
import json
import shutil
import signal
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from cbet_jax.analysis import figures
from cbet_jax.runs import checkpoint, metrics_table, saving, train_loop
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.train_loop import HostSettings
from experiments import minigrid_pretrain
from experiments.common import training
from tests.support.fake_program import fake_program
from tests.support.interruptions import interrupt_after
from tests.support.refusal import refused
from tests.support.tiny import (
    ARGUMENTS,
    CHUNK,
    CHUNK_FRAMES,
    FRAMES,
    SEEDS,
    saved_frames,
)

RARELY = ("--checkpoint-seconds", "1000")  # saves at the end only


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch):
    monkeypatch.setattr(minigrid_pretrain, "build", fake_program)
    monkeypatch.setattr(figures, "draw_learning_curves", lambda *_: [])


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> RunDirectory:
    """A finished run, which tests leave as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(minigrid_pretrain, "build", fake_program)
        return pretrain(tmp_path_factory.mktemp("unbroken"), *RARELY)


@pytest.fixture(scope="module")
def stopped_run(tmp_path_factory) -> RunDirectory:
    """A run that Ctrl-C stopped after four chunks, each of which it saved."""
    root = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(minigrid_pretrain, "build", fake_program)
        interrupt_after(patch, 4)
        with pytest.raises(SystemExit):
            pretrain(root)
    return RunDirectory(root)


@pytest.fixture
def stopped(stopped_run, tmp_path) -> RunDirectory:
    """The same run, for one test to change."""
    return RunDirectory(shutil.copytree(stopped_run.root, tmp_path / "stopped"))


def pretrain(root, *arguments) -> RunDirectory:
    """Run the experiment's main in a directory."""
    minigrid_pretrain.main([*ARGUMENTS, "--out", str(root), *arguments])
    return RunDirectory(root)


def largest(folder: Path) -> Path:
    return max((p for p in folder.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)


def files(directory: RunDirectory) -> dict[str, bytes]:
    paths = [p for p in directory.root.rglob("*") if p.is_file()]
    return {str(path.relative_to(directory.root)): path.read_bytes() for path in paths}


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_ends_the_run(number, status, tmp_path, monkeypatch, capsys):
    before = signal.getsignal(signal.SIGINT)  # ignored, where tests run in the background
    interrupt_after(monkeypatch, 4, number)
    with pytest.raises(SystemExit) as stop:
        pretrain(tmp_path, *RARELY)
    assert stop.value.code == status
    assert saved_frames(RunDirectory(tmp_path)) == [4 * CHUNK_FRAMES]
    assert "--resume" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGINT) is before


def test_saving_takes_a_tenth_of_the_time_at_most(tmp_path, monkeypatch):
    clock, saved = [0.0], []

    def means(chunk):
        clock[0] += 1  # second, a chunk
        return shown(chunk)

    def save(folder, state, position, settings):
        # Ten times as long: until the third chunk after, the sixth, the next, the longest.
        saved.append(position.frames // CHUNK_FRAMES)
        clock[0] += {1: 0.22, 4: 0.52, 10: 0.0, 11: 1000.0, 21: 1000.0}[saved[-1]]
        return checkpointed(folder, state, position, settings)

    shown, checkpointed = metrics_table.means, checkpoint.save
    monkeypatch.setattr(metrics_table, "means", means)
    monkeypatch.setattr(checkpoint, "save", save)
    monkeypatch.setattr(saving, "LONGEST_SECONDS", 9.5)
    monkeypatch.setattr(saving, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with pytest.raises(KeyError, match="30"):  # the end is saved in any case
        pretrain(tmp_path, "--checkpoint-seconds", "None")
    assert saved == [1, 4, 10, 11, 21, 30]
    options, _ = training.read(minigrid_pretrain.EXPERIMENT, ["--preset", "smoke"])
    assert options.checkpoint_seconds is HostSettings(Console()).checkpoint_seconds is None


def test_full_count_tables_are_told_of_once(tmp_path, monkeypatch, capsys):
    def show(run, chunk, position):
        lost = np.full((CHUNK, SEEDS), float(next(overflow)), np.float32)
        shown(run, chunk | {"count_overflow": lost}, position)

    shown, overflow = train_loop._Run.show, itertools.count()
    monkeypatch.setattr(train_loop._Run, "show", show)
    monkeypatch.setattr(train_loop, "OVERFLOW_SHARE", 0.93 / CHUNK_FRAMES)  # 14 > 0.93 * 15
    pretrain(tmp_path, *RARELY)
    assert capsys.readouterr().out.count("count tables are full: 14 visits") == 1


def test_a_resumed_run_writes_the_same_numbers(unbroken, stopped):
    with open(stopped.metrics, "a") as file:
        file.write("0,99999,entropy,1.0\n1,999")  # rows of a chunk that was never saved
    pretrain(stopped.root, "--resume", *RARELY)
    assert stopped.metrics.read_bytes() == unbroken.metrics.read_bytes()
    sessions = json.loads(stopped.manifest.read_text())["sessions"]
    assert [session["from_frames"] for session in sessions] == [0, 4 * CHUNK_FRAMES]
    assert sessions[-1]["frames"] == FRAMES


def test_a_run_that_died_before_its_first_checkpoint_begins_anew(unbroken, tmp_path):
    died = RunDirectory(tmp_path / "died")
    died.create(unbroken.settings())
    died.metrics.write_text("seed,frames,name,value\n0,4")
    (died.checkpoints / ".000000000080.tmp").mkdir(parents=True)
    minigrid_pretrain.main(["--out", str(died.root), "--resume", *RARELY])
    assert died.metrics.read_bytes() == unbroken.metrics.read_bytes()
    assert not list(died.checkpoints.glob(".*"))


def test_a_finished_run_is_not_touched_again(unbroken, tmp_path, capsys):
    directory = RunDirectory(shutil.copytree(unbroken.root, tmp_path / "finished"))
    before = files(directory)
    minigrid_pretrain.main(["--out", str(directory.root), "--resume"])
    assert "had already finished" in capsys.readouterr().out
    assert files(directory).keys() == before.keys()
    unchanged = {name for name, content in files(directory).items() if before[name] == content}
    assert unchanged >= {"config.json", "manifest.json", "metrics.csv"}


def test_a_finished_run_is_made_longer(unbroken, tmp_path, capsys):
    longer = FRAMES + 5 * CHUNK_FRAMES
    whole = pretrain(tmp_path / "whole", "--frames", str(longer), *RARELY)
    directory = RunDirectory(shutil.copytree(unbroken.root, tmp_path / "extended"))
    resume = ["--out", str(directory.root), "--resume"]
    minigrid_pretrain.main([*resume, "--frames", str(longer)])
    assert f"finished at {longer:,} frames" in capsys.readouterr().out
    assert directory.settings() == whole.settings()
    assert directory.metrics.read_bytes() == whole.metrics.read_bytes()
    error = refused(minigrid_pretrain.main, [*resume, "--frames", str(FRAMES)], capsys)
    assert f"train.frames is {longer}, not {FRAMES}" in error


def test_a_run_whose_tables_are_too_small_is_not_made_longer(
    unbroken, tmp_path, monkeypatch, capsys
):
    def larger(settings, mesh=None):
        program = fake_program(settings, mesh)
        init = lambda keys: program.init(keys)._replace(actor=np.zeros((SEEDS, 1)))  # noqa: E731
        return program._replace(init=init)

    monkeypatch.setattr(minigrid_pretrain, "build", larger)
    directory = RunDirectory(shutil.copytree(unbroken.root, tmp_path / "extended"))
    arguments = ["--out", str(directory.root), "--resume", "--frames", str(10 * FRAMES)]
    assert "have no room for" in refused(minigrid_pretrain.main, arguments, capsys)
    assert directory.settings() == unbroken.settings()


def test_rounded_frames_and_long_runs_are_told_of(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(train_loop, "LONG_SECONDS", 0.0)
    pretrain(tmp_path, "--frames", str(CHUNK_FRAMES + 1))
    shown = " ".join(capsys.readouterr().out.split())
    said = f"{CHUNK_FRAMES + 1} frames are rounded up to {2 * CHUNK_FRAMES}: whole chunks of"
    assert f"{said} {CHUNK_FRAMES}" in shown
    assert shown.count("hours more") == 1


def test_an_occupied_directory_is_refused(stopped, capsys):
    before = files(stopped)
    error = refused(minigrid_pretrain.main, [*ARGUMENTS, "--out", str(stopped.root)], capsys)
    assert "already holds a run" in error
    assert files(stopped) == before


def test_a_contradicting_command_line_is_refused(stopped, capsys):
    arguments = ["--resume", "--out", str(stopped.root), "--network.lstm-units", "32"]
    error = refused(minigrid_pretrain.main, arguments, capsys)
    assert "train.network.lstm_units is 4, not 32" in error


def test_a_checkpoint_of_another_run_is_refused(stopped, capsys):
    config = json.loads(stopped.config.read_text())
    config["train"]["loss"]["discount"] = 0.9
    stopped.config.write_text(json.dumps(config))
    error = refused(minigrid_pretrain.main, ["--resume", "--out", str(stopped.root)], capsys)
    assert "train.loss.discount is 0.99, not 0.9" in error


def test_a_damaged_checkpoint_falls_back_to_the_last_good_one(unbroken, stopped, capsys):
    newest = checkpoint.checkpoints(stopped.checkpoints)[-1]
    largest(newest / "state").write_bytes(b"")
    capsys.readouterr()
    pretrain(stopped.root, "--resume", *RARELY)
    shown = capsys.readouterr().out
    assert f"{newest.name} is damaged" in shown
    assert f"continuing from {3 * CHUNK_FRAMES:012d}" in shown
    assert stopped.metrics.read_bytes() == unbroken.metrics.read_bytes()


def test_no_good_checkpoint_is_refused(stopped, capsys):
    for path in checkpoint.checkpoints(stopped.checkpoints):
        (path / "checkpoint.json").unlink()
    error = refused(minigrid_pretrain.main, ["--resume", "--out", str(stopped.root)], capsys)
    assert "every checkpoint" in error


def test_a_metrics_table_that_lost_rows_is_refused(stopped, capsys):
    stopped.metrics.write_text("seed,frames,name,value\n")
    error = refused(minigrid_pretrain.main, ["--resume", "--out", str(stopped.root)], capsys)
    assert "metrics.csv" in error


def test_a_second_process_is_kept_out(stopped, capsys):
    with stopped.lock():
        error = refused(minigrid_pretrain.main, ["--resume", "--out", str(stopped.root)], capsys)
    assert "in use" in error


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(minigrid_pretrain, "build", partial(fake_program, bad_update=11))
    with pytest.raises(SystemExit) as stop:
        pretrain(tmp_path)
    error = capsys.readouterr().err
    assert stop.value.code == 1
    assert "the loss of update 11 is not a finite number" in error
    assert f"the one at {5 * CHUNK_FRAMES:,} frames" in error
    assert error.count("\n") == 1
    directory = RunDirectory(tmp_path)
    assert saved_frames(directory)[-1] == 5 * CHUNK_FRAMES
    last = metrics_table.read(directory.metrics)["first_bad_update"][0]
    assert np.array_equal(last.frames, [11 * CHUNK_FRAMES // 2])


def test_parameters_that_are_not_finite_are_never_saved(tmp_path, capsys, monkeypatch):
    def silent(settings, mesh):
        program = fake_program(settings, mesh, bad_update=6)

        class Lowered:
            def lower(self, template):
                return self

            def compile(self):
                return self

            def __call__(self, state):
                state, chunk = program.advance(state)
                return state, {**chunk, "first_bad_update": np.nan * chunk["entropy"]}

        return program._replace(advance=Lowered())

    monkeypatch.setattr(minigrid_pretrain, "build", silent)
    with pytest.raises(SystemExit):
        pretrain(tmp_path)
    assert "a parameter is not a finite number after update 6" in capsys.readouterr().err
    assert saved_frames(RunDirectory(tmp_path)) == [CHUNK_FRAMES, 2 * CHUNK_FRAMES]
