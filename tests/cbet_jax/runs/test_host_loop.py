"""The host's loop around a stand-in for the compiled program."""

import itertools
import json
import os
import resource
import shutil
import signal
import sys
import threading
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from cbet_jax.analysis import figures
from cbet_jax.intrinsic.interface import Params
from cbet_jax.learner import LearnerState
from cbet_jax.runs import (
    checkpoint,
    host_loop,
    manifest,
    memory,
    metrics_table,
    save_clock,
    signals,
)
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError, checkpoints
from cbet_jax.runs.host_loop import HostSettings
from cbet_jax.runs.run_files import RunFiles
from cbet_jax.runs.save_clock import SaveClock
from cbet_jax.train import TrainState
from experiments import minigrid_pretrain, minigrid_tabula_rasa, report
from experiments.common import endings, opening, training_command
from tests.support.damage import cut
from tests.support.fake_program import fake_program, program_of
from tests.support.interruptions import interrupt_after
from tests.support.refusal import refused
from tests.support.tiny import ARGUMENTS, CHUNK, CHUNK_FRAMES, FRAMES, SEEDS, saved_frames
from tests.support.unrendered import leave_unrendered

BAD_UPDATE = 11
RARELY = ("--checkpoint-seconds", "1000")  # saves at the end only


class Compiled:
    """The `advance` of a program, as if it was compiled already."""

    out_info = (), {}  # the shapes of a state and of metrics

    def __init__(self, advance):
        self.advance = advance

    def lower(self, template):
        return self

    def compile(self):
        return self

    def memory_analysis(self):
        return None

    def __call__(self, state):
        return self.advance(state)


@pytest.fixture(scope="module", autouse=True)
def _stand_in():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.common.gridworlds.build", fake_program)
        patch.setattr(endings, "draw_film", lambda *_: ([], 0))
        patch.setattr(figures, "draw_learning_curves", lambda *_: [])
        yield


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> RunDirectory:
    """A finished run, which tests leave as it is."""
    return pretrain(tmp_path_factory.mktemp("unbroken"), *RARELY)


@pytest.fixture(scope="module")
def stopped_run(tmp_path_factory) -> RunDirectory:
    """A run that Ctrl-C stopped after four chunks, each of which it saved."""
    root = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
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


def resume(directory: RunDirectory, *arguments) -> None:
    """Run the experiment's main on what is in a directory."""
    minigrid_pretrain.main(["--out", str(directory.root), "--resume", *arguments])


def refused_resume(capsys, directory: RunDirectory, *arguments, status=2) -> str:
    """Return the line that refuses to resume a run."""
    words = ["--out", str(directory.root), "--resume", *arguments]
    return refused(minigrid_pretrain.main, words, capsys, status)


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in (folder, *folder.rglob("*")) if path.is_file()}


def test_a_signal_is_answered_while_a_chunk_is_played(tmp_path, monkeypatch):
    answered = threading.Event()
    monkeypatch.setattr(signals.Stop, "reply", lambda stop: answered.set())

    def build(settings, mesh=None):
        program = fake_program(settings, mesh)

        def advance(state):
            os.kill(os.getpid(), signal.SIGTERM)
            assert answered.wait(timeout=30)
            return program.advance(state)

        return program._replace(advance=Compiled(advance))

    monkeypatch.setattr("experiments.common.gridworlds.build", build)
    with pytest.raises(SystemExit) as stop:
        pretrain(tmp_path)
    assert stop.value.code == 128 + signal.SIGTERM
    assert saved_frames(RunDirectory(tmp_path)) == [CHUNK_FRAMES]


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


def test_saving_takes_a_tenth_of_the_time_at_most(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(save_clock, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(save_clock, "LONGEST_SECONDS", 9.5)
    clock, saved = SaveClock(None), []
    for chunk in range(1, 31):
        now[0] += 1
        if clock.is_due():
            saved.append(chunk)
            with clock.saving():  # ten times as long until the next: 3 chunks, 6, 1, the longest
                now[0] += {1: 0.22, 4: 0.52, 10: 0.0, 11: 1000.0, 21: 1000.0}[chunk]
    assert saved == [1, 4, 10, 11, 21]
    options, _ = opening.read(minigrid_pretrain.EXPERIMENT, ["--preset", "smoke"])
    assert options.checkpoint_seconds is HostSettings(Console()).checkpoint_seconds is None


def test_full_count_tables_are_told_of_once(tmp_path, monkeypatch, capsys):
    def show(loop, chunk):
        lost = np.full((CHUNK, SEEDS), float(next(overflow)), np.float32)
        shown(loop, chunk | {"count_overflow": lost})

    shown, overflow = host_loop._Loop.show, itertools.count()
    monkeypatch.setattr(host_loop._Loop, "show", show)
    monkeypatch.setattr(host_loop, "OVERFLOW_SHARE", 0.75 / CHUNK_FRAMES)  # 4 > 0.75 * 5
    pretrain(tmp_path, *RARELY)
    assert capsys.readouterr().out.count("count tables are full: 4 visits") == 1


FOREIGN = (  # files of the user's
    *(".draft.tmp", ".draft.0a.tmp.csv", ".a.0A1B2C3D.tmp", "world-of-mine.py", "policies/.x.tmp"),
    *("figures/.mine.tmp.png", "checkpoints/notes", "checkpoints/7/notes"),
    *("checkpoints/.mine.tmp/notes", "checkpoints/0000000000007.mine/notes"),
)


def test_a_resumed_run_writes_the_same_numbers(unbroken, stopped, tmp_path):
    """Whatever a user keeps beside them, such as a copy made of hard links for a backup."""
    os.link(stopped.metrics, tmp_path / "backup.csv")
    with open(stopped.metrics, "a") as file:
        file.write("0,99999,entropy,1.0\n1,999")  # rows of a chunk that was never saved
    backed_up = stopped.metrics.read_bytes()
    (stopped.checkpoints / "7²").mkdir()
    for name in FOREIGN:
        (stopped.root / name).parent.mkdir(parents=True, exist_ok=True)
        (stopped.root / name).write_text("precious")
    resume(stopped, *RARELY)
    assert {(stopped.root / name).read_text() for name in FOREIGN} == {"precious"}
    assert stopped.metrics.read_bytes() == unbroken.metrics.read_bytes()
    assert (tmp_path / "backup.csv").read_bytes() == backed_up
    sessions = json.loads(stopped.manifest.read_text())["sessions"]
    assert [session["from_frames"] for session in sessions] == [0, 4 * CHUNK_FRAMES]
    assert sessions[-1]["frames"] == FRAMES


def test_a_run_that_died_before_its_first_checkpoint_begins_anew(unbroken, tmp_path):
    died = RunDirectory(tmp_path / "died")
    died.create(unbroken.settings())
    manifest.Session(died.manifest, ["cbet"]).record(died.manifest)  # before the table
    died.metrics.write_text("seed,frames,name,value\n0,4")
    died.checkpoints.mkdir()
    left = died.root / ".manifest.0a1b2c3d.tmp.json"
    left.write_text("half of it")
    resume(died, *RARELY)
    assert died.metrics.read_bytes() == unbroken.metrics.read_bytes()
    assert not left.exists()


def test_a_run_that_ended_early_is_not_compiled_again(tmp_path, monkeypatch, capsys):
    ended = property(lambda run: "it is learnt" if run.position.frames else "")
    monkeypatch.setattr(RunFiles, "ending", ended)
    run = pretrain(tmp_path / "run", *RARELY)
    assert saved_frames(run)[-1] == CHUNK_FRAMES
    before = files(run.root)
    monkeypatch.setattr(host_loop._Loop, "compile", None)
    resume(run)
    assert f"had already finished at {CHUNK_FRAMES:,} frames" in capsys.readouterr().out
    assert files(run.root) == before


def test_a_finished_run_is_not_touched_again_unless_it_is_made_longer(unbroken, tmp_path, capsys):
    directory = RunDirectory(shutil.copytree(unbroken.root, tmp_path / "finished"))
    kept = [directory.config, directory.manifest, directory.metrics]
    before, names = [path.read_bytes() for path in kept], files(directory.root).keys()
    resume(directory)
    assert "had already finished" in capsys.readouterr().out
    assert files(directory.root).keys() == names
    assert [path.read_bytes() for path in kept] == before
    longer = FRAMES + 5 * CHUNK_FRAMES
    whole = pretrain(tmp_path / "whole", "--frames", str(longer), *RARELY)
    resume(directory, "--frames", str(longer))
    assert directory.settings() == whole.settings()
    assert directory.metrics.read_bytes() == whole.metrics.read_bytes()
    error = refused_resume(capsys, directory, "--frames", str(FRAMES))
    assert f"train.frames is {longer}, not {FRAMES}" in error


def test_a_run_whose_tables_are_too_small_is_not_made_longer(
    unbroken, tmp_path, monkeypatch, capsys
):
    def larger(settings, mesh=None):
        program = fake_program(settings, mesh)
        init = lambda keys: program.init(keys)._replace(actor=np.zeros((SEEDS, 1)))  # noqa: E731
        return program._replace(init=init)

    monkeypatch.setattr("experiments.common.gridworlds.build", larger)
    directory = RunDirectory(shutil.copytree(unbroken.root, tmp_path / "extended"))
    assert "have no room for" in refused_resume(capsys, directory, "--frames", str(10 * FRAMES))
    assert directory.settings() == unbroken.settings()


def test_rounded_frames_and_long_runs_are_told_of(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(host_loop, "LONG_SECONDS", 0.0)
    pretrain(tmp_path, "--frames", str(CHUNK_FRAMES + 1))
    shown = " ".join(capsys.readouterr().out.split())
    said = f"{CHUNK_FRAMES + 1} frames are rounded up to {2 * CHUNK_FRAMES}: whole chunks of"
    assert f"{said} {CHUNK_FRAMES}" in shown
    assert shown.count("hours more") == 1


def test_an_occupied_directory_is_refused(stopped, capsys):
    before = files(stopped.root)
    error = refused(minigrid_pretrain.main, [*ARGUMENTS, "--out", str(stopped.root)], capsys)
    assert "already holds a run" in error
    assert files(stopped.root) == before


def test_a_damaged_checkpoint_falls_back_to_the_last_good_one(unbroken, stopped, capsys):
    newest = checkpoints(stopped.checkpoints)[-1]
    cut(newest)
    capsys.readouterr()
    resume(stopped, *RARELY)
    shown = capsys.readouterr().out
    assert f"{newest.name} is damaged" in shown
    assert f"continuing from {3 * CHUNK_FRAMES:013d}" in shown
    assert newest.with_name(f"{newest.name}.damaged-1").exists()
    assert stopped.metrics.read_bytes() == unbroken.metrics.read_bytes()


def test_policies_that_a_resumed_run_has_passed_are_told(stopped, capsys):
    """Unless they were kept before."""
    capsys.readouterr()
    for _ in range(2):
        keep = (str(number * CHUNK_FRAMES) for number in (2, 5))
        resume(stopped, *RARELY, "--until", str(5 * CHUNK_FRAMES), "--keep-at", *keep)
        assert capsys.readouterr().out.count("no policies are kept") == 1
    assert [path.name for path in checkpoints(stopped.policies)] == [f"{5 * CHUNK_FRAMES:013d}"]
    (stopped.policies / f"{2 * CHUNK_FRAMES:013d}").mkdir()
    resume(stopped, "--keep-at", str(2 * CHUNK_FRAMES))
    assert "no policies are kept" not in capsys.readouterr().out


def all_checkpoints(directory):
    for path in checkpoints(directory.checkpoints):
        cut(path)


def rewritten(name, change):
    """Return a function that changes the content of a file."""

    def damage(directory):
        path = directory.root / name
        path.write_bytes(change(path.read_bytes()))

    return damage


METRICS = {
    "a number": lambda content: content.replace(b"entropy,0.", b"entropy,1.", 1),
    "a byte": lambda content: content[:200] + b"\xff" + content[201:],
    "the end": lambda content: content[:-300],
    "a row": lambda content: b"".join(content.splitlines(keepends=True)[:-3]),
    "all": lambda _: b"",
}
DAMAGES = {
    **{what: (rewritten("metrics.csv", change), "is damaged") for what, change in METRICS.items()},
    **{
        f"{name} is {content[:20]!r}": (rewritten(name, lambda _, new=content: new), f"{name} ")
        for name in ("config.json", "manifest.json")
        for content in (b"", b"{", b'{"sessions": 3}', b"[]", b"\xff\xfe", b"[" * 10**5)
    },
    "no metrics": (lambda directory: directory.metrics.unlink(), "metrics.csv is damaged"),
    "another setting": (
        rewritten("config.json", lambda content: content.replace(b"0.99", b"0.9")),
        "it was changed since it was written",
    ),
    "every checkpoint": (all_checkpoints, "every checkpoint"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_damage_is_refused(stopped, what, capsys):
    damage, problem = DAMAGES[what]
    damage(stopped)
    before = files(stopped.root)
    assert problem in refused_resume(capsys, stopped, status=3)
    if what != "every checkpoint":  # which are set aside
        assert files(stopped.root) == before
    if what in METRICS:
        with pytest.raises(RunDirectoryError, match="is damaged"):
            metrics_table.read_verified(stopped)


def test_contradictions_other_surroundings_and_a_second_process_are_refused(
    stopped, capsys, monkeypatch
):
    error = refused_resume(capsys, stopped, "--network.lstm-units", "32")
    assert "train.network.lstm_units is 4, not 32" in error
    with stopped.lock():
        assert "in use" in refused_resume(capsys, stopped)
    monkeypatch.setenv("XLA_FLAGS", f"{os.environ['XLA_FLAGS']} --xla_cpu_enable_fast_math=true")
    assert "XLA_FLAGS" in refused_resume(capsys, stopped)


@pytest.mark.parametrize(
    "name", [".lock", "metrics.csv", "manifest.json", "checkpoints", "figures"]
)
def test_a_link_is_refused_and_what_it_leads_to_stays(stopped, name, tmp_path, capsys):
    victim, link = tmp_path / "victim", stopped.root / name
    if link.exists():
        link.rename(victim)
    else:
        victim.mkdir()
        (victim / "learning_curves.png").write_text("precious")
    before = files(victim)
    link.symlink_to(victim)
    assert "is a link" in refused_resume(capsys, stopped)
    assert files(victim) == before


@pytest.mark.parametrize("name", [".lock", "metrics.csv"])
def test_a_pipe_is_refused(stopped, name, capsys):
    (stopped.root / name).unlink()
    os.mkfifo(stopped.root / name)
    assert "no ordinary file" in refused_resume(capsys, stopped, status=3)


@pytest.mark.parametrize(
    ("method", "call", "limit"),
    [("append", 5, 1000), ("sync", 1, 100)],
    ids=["table", "checkpoint"],
)
def test_a_full_disk_ends_the_run_in_one_line(
    method, call, limit, tmp_path, unbroken, capsys, monkeypatch
):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it would be cut off
    limits, calls = resource.getrlimit(resource.RLIMIT_FSIZE), itertools.count(1)
    original = getattr(metrics_table.Table, method)

    def fill(*arguments):
        if next(calls) == call:  # files grow up to so many bytes
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
        return original(*arguments)

    directory = RunDirectory(tmp_path / "run")
    arguments = [*ARGUMENTS, "--out", str(directory.root)]
    with monkeypatch.context() as patch:
        patch.setattr(metrics_table.Table, method, fill)
        try:
            error = refused(minigrid_pretrain.main, arguments, capsys, status=3)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "File too large" in error
    assert saved_frames(directory)[-1:] == [(call - 1) * CHUNK_FRAMES][: call - 1]
    assert not list(directory.checkpoints.glob(".*"))
    resume(directory)
    assert directory.metrics.read_bytes() == unbroken.metrics.read_bytes()


@pytest.mark.parametrize("what", ["directory", "table", "lock"])
def test_a_run_whose_files_are_replaced_ends_in_one_line(what, tmp_path, capsys, monkeypatch):
    directory, append = RunDirectory(tmp_path / "run"), metrics_table.Table.append
    lock = directory.root / ".lock"

    def delete(*arguments):
        if arguments[2] == CHUNK_FRAMES:
            if what == "directory":
                shutil.rmtree(directory.root)
            else:
                (lock if what == "lock" else directory.metrics).unlink()
                lock.touch()  # as another process does
        return append(*arguments)

    monkeypatch.setattr(metrics_table.Table, "append", delete)
    arguments = [*ARGUMENTS, "--out", str(directory.root)]
    error = refused(minigrid_pretrain.main, arguments, capsys, status=3)
    assert "it was deleted or replaced during the run" in error
    assert directory.root.exists() == (what != "directory")


BUSY = {  # what a process is doing as its directory is moved away -> the function called then
    "playing": (metrics_table.Table, "append"),
    "beginning a save": (checkpoint, "_manager"),
    "saving": (checkpoint, "write_file"),
    "ending a save": (checkpoint._Handler, "save"),
    "keeping policies": (RunFiles, "keep_policies"),
    "recording": (RunFiles, "record"),
}
MOVES = [*product(BUSY, ("succeeded",)), *zip(BUSY, ("moved", "deleted") * 3, strict=True)]


@pytest.mark.parametrize(("busy", "then"), MOVES)
def test_a_run_that_was_moved_writes_nothing_where_it_was(
    busy, then, unbroken, tmp_path, capsys, monkeypatch
):
    root, (owner, name) = tmp_path / "run", BUSY[busy]
    calls, original = itertools.count(1), getattr(owner, name)

    def move(*arguments, **named):
        result = original(*arguments, **named) if busy == "ending a save" else None
        if next(calls) == 2:
            root.rename(tmp_path / "old")
            if then == "succeeded":  # by another run, which has finished
                shutil.copytree(unbroken.root, root)
            if then == "deleted":
                shutil.rmtree(tmp_path / "old")
        return result if busy == "ending a save" else original(*arguments, **named)

    monkeypatch.setattr(owner, name, move)
    keep = ("--keep-at", str(CHUNK_FRAMES), str(2 * CHUNK_FRAMES))
    error = refused(minigrid_pretrain.main, [*ARGUMENTS, "--out", str(root), *keep], capsys, 3)
    assert "it was deleted or replaced during the run" in error
    if then == "succeeded":
        assert {path.relative_to(root): content for path, content in files(root).items()} == {
            path.relative_to(unbroken.root): content
            for path, content in files(unbroken.root).items()
        }
    else:
        assert not root.exists()


def test_metrics_that_were_damaged_while_a_run_trained_are_not_believed(
    tmp_path, capsys, monkeypatch
):
    directory, append = RunDirectory(tmp_path / "run"), metrics_table.Table.append

    def damage(*arguments):
        if arguments[2] == 2 * CHUNK_FRAMES:
            with open(directory.metrics, "r+b") as file:
                file.write(b"SEED")
        return append(*arguments)

    monkeypatch.setattr(metrics_table.Table, "append", damage)
    pretrain(directory.root, "--until", str(4 * CHUNK_FRAMES))
    words = ["--out", str(directory.root), "--resume"]
    for main, arguments in ((minigrid_pretrain.main, words), (report.main, words[1:2])):
        error = refused(main, arguments, capsys, status=3)
        assert f"metrics.csv is damaged: it is not what was written by {4 * CHUNK_FRAMES}" in error


def test_a_program_that_does_not_fit_leaves_nothing(tmp_path, stopped, capsys, monkeypatch):
    """What it needs is known once it is compiled, before anything is played."""
    monkeypatch.setattr(memory, "available", lambda devices: 100)
    arguments = [*ARGUMENTS, "--out", str(tmp_path / "new")]
    assert "training takes 0.0 GiB" in refused(minigrid_pretrain.main, arguments, capsys)
    assert not (tmp_path / "new").exists()
    before = files(stopped.root)
    assert "training takes 0.0 GiB" in refused_resume(capsys, stopped)
    assert files(stopped.root) == before


@pytest.mark.parametrize(("name", "status"), [("x" * 300, 3), ("file/run", 2), ("/proc/run", 3)])
def test_a_directory_that_cannot_be_made_is_refused(name, status, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    error = refused(minigrid_pretrain.main, [*ARGUMENTS, "--out", name], capsys, status)
    assert name in error
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("experiments.common.gridworlds.build", partial(fake_program, bad_update=11))
    with pytest.raises(SystemExit) as stop:
        pretrain(tmp_path)
    error = capsys.readouterr().err
    assert stop.value.code == 4
    assert "the loss of update 11 is not a finite number" in error
    assert f"the last good checkpoint is at {5 * CHUNK_FRAMES:,} frames" in error
    assert error.count("\n") == 1
    assert "check-method" not in error  # the method is the package's
    directory = RunDirectory(tmp_path)
    assert saved_frames(directory)[-1] == 5 * CHUNK_FRAMES
    last = metrics_table.read(directory.metrics)["first_bad_update"][0]
    assert np.array_equal(last.frames, [11 * CHUNK_FRAMES // 2])


@pytest.mark.parametrize("of_method", [False, True])
def test_parameters_that_are_not_finite_are_never_saved(of_method, tmp_path, capsys, monkeypatch):
    def silent(settings, mesh):
        program = fake_program(settings, mesh, bad_update=6)

        def advance(state):
            state, chunk = program.advance(state)
            if of_method:
                policy = state.learner.policy
                networks = Params({"network": policy}, {})
                learner = state.learner._replace(policy=np.zeros_like(policy), intrinsic=networks)
                state = state._replace(learner=learner)
            return state, {**chunk, "first_bad_update": np.nan * chunk["entropy"]}

        return program._replace(advance=Compiled(advance))

    monkeypatch.setattr("experiments.common.gridworlds.build", silent)
    with pytest.raises(SystemExit):
        pretrain(tmp_path)
    assert "a parameter is not a finite number after update 6" in capsys.readouterr().err
    assert saved_frames(RunDirectory(tmp_path)) == [CHUNK_FRAMES, 2 * CHUNK_FRAMES]


def test_a_run_of_which_only_policies_are_left_is_not_begun_anew(unbroken, tmp_path, capsys):
    """They are all that tasks need of a run."""
    directory = RunDirectory(shutil.copytree(unbroken.root, tmp_path / "policies"))
    newest = checkpoints(directory.checkpoints)[-1]
    directory.policies.mkdir()
    newest.rename(directory.policies / newest.name)
    shutil.rmtree(directory.checkpoints)
    directory.manifest.unlink()
    directory.metrics.unlink()
    line = ["--out", str(directory.root), "--resume", "--frames", str(2 * FRAMES)]
    error = refused(minigrid_pretrain.main, line, capsys)
    assert f"{directory.root} has lost its checkpoints: begin a new run" in error
    assert directory.settings().train.frames == FRAMES


@pytest.mark.parametrize("loses_manifest", [False, True])
def test_a_run_that_lost_its_checkpoints_is_not_begun_anew(loses_manifest, tmp_path, capsys):
    directory = pretrain(tmp_path)
    before = directory.metrics.read_bytes()
    shutil.rmtree(directory.checkpoints)
    if loses_manifest:
        directory.manifest.unlink()
    error = refused(minigrid_pretrain.main, ["--out", str(tmp_path), "--resume"], capsys)
    assert f"{tmp_path} has lost its checkpoints: begin a new run" in error
    assert directory.metrics.read_bytes() == before


@pytest.fixture
def together(monkeypatch):
    """Return a function that trains runs in one program, each from a first seed of its own."""

    def build(settings, mesh, *others):
        runs = (settings, *others)
        ends = [float(run.train.optimizer.learning_rate) == 1.0 for run in runs]
        bad = np.repeat(np.where(ends, BAD_UPDATE, -1), SEEDS)
        return fake_program(settings, mesh, bad_update=bad)

    def train(roots, *arguments, diverges=()):
        lines = []
        for number, root in enumerate(roots):
            rate = ("--optimizer.learning-rate", "1.0") if number in diverges else ()
            own = ("--out", str(root), "--first-seed", str(10 * number), *rate, *arguments)
            lines += [training_command.AND, *ARGUMENTS, *own]
        minigrid_pretrain.main(lines[1:])

    monkeypatch.setattr("experiments.common.gridworlds.build", build)
    return train


def test_runs_of_one_program_end_as_they_do_alone(together, tmp_path, monkeypatch, capsys):
    roots = [tmp_path / name for name in "abc"]
    with monkeypatch.context() as patch:
        interrupt_after(patch, 3 * 4)
        with pytest.raises(SystemExit) as stop:
            together(roots)
    assert stop.value.code == 130
    runs = [RunDirectory(root) for root in roots]
    assert {frames for run in runs for frames in saved_frames(run)[-1:]} == {4 * CHUNK_FRAMES}
    shutil.rmtree(checkpoints(runs[1].checkpoints)[-1])  # killed before it was saved
    together(roots, "--resume", *RARELY)
    assert "3 runs in one program" in capsys.readouterr().out
    for number, run in enumerate(runs):
        alone = pretrain(tmp_path / f"alone-{number}", "--first-seed", str(10 * number), *RARELY)
        assert run.metrics.read_bytes() == alone.metrics.read_bytes()
        assert saved_frames(run)[-1] == FRAMES
        sessions = json.loads(run.manifest.read_text())["sessions"]
        assert [session["from_frames"] for session in sessions] == [0, 3 * CHUNK_FRAMES]
        assert sessions[-1]["runs_together"] == 3
    before = [files(run.root) for run in runs]
    together(roots, "--resume")
    assert [files(run.root) for run in runs] == before


def test_runs_of_one_program_have_equal_ends(together, tmp_path, capsys):
    line = [*ARGUMENTS, "--out", str(tmp_path / "a")]
    for name, value in (("--until", CHUNK_FRAMES), ("--devices", 1)):
        other = [*line[:-1], str(tmp_path / "b"), name, str(value)]
        said = refused(minigrid_pretrain.main, [*line, training_command.AND, *other], capsys)
        assert f"joins must have equal {name}" in said
    assert not list(tmp_path.iterdir())


def test_runs_without_a_common_checkpoint_begin_again(together, tmp_path, monkeypatch, capsys):
    """A kill just after they have gone back does not end them."""
    roots = [tmp_path / name for name in "ab"]
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2 * 2)
        with pytest.raises(SystemExit):
            together(roots)
    first, second = map(RunDirectory, roots)
    shutil.rmtree(checkpoints(first.checkpoints)[0])
    cut(checkpoints(second.checkpoints)[1])
    with monkeypatch.context() as patch:
        patch.setattr(RunFiles, "restore_task", Mock(side_effect=MemoryError))
        with pytest.raises(SystemExit):
            together(roots, "--resume")
    assert "continue from 0 frames, the last that all have saved" in capsys.readouterr().out
    assert not any(map(saved_frames, (first, second)))
    together(roots, "--resume", *RARELY)
    assert saved_frames(first)[-1] == saved_frames(second)[-1] == FRAMES
    alone = pretrain(tmp_path / "alone", *RARELY)
    assert first.metrics.read_bytes() == alone.metrics.read_bytes()


def test_one_of_several_runs_may_be_continued_alone(unbroken, together, tmp_path, monkeypatch):
    roots = [tmp_path / name for name in "ab"]
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2 * 4)
        with pytest.raises(SystemExit):
            together(roots)
    pretrain(roots[0], "--resume", *RARELY)
    assert RunDirectory(roots[0]).metrics.read_bytes() == unbroken.metrics.read_bytes()
    together(roots, "--resume", *RARELY)  # the other one
    assert saved_frames(RunDirectory(roots[1]))[-1] == FRAMES


def test_one_of_several_runs_may_diverge(together, tmp_path, capsys, monkeypatch):
    roots, widths = [tmp_path / name for name in "abc"], []
    means = lambda chunk: widths.append(chunk["interactions"].shape[1]) or {}  # noqa: E731
    monkeypatch.setattr(metrics_table, "means", means)
    with pytest.raises(SystemExit) as stop:
        together(roots, diverges=(1,))
    shown, error = capsys.readouterr()
    assert stop.value.code == 4
    line = f"{roots[1]}: the loss of update {BAD_UPDATE} is not a finite number"
    assert error.startswith(f"error: {line}")
    assert error.count("not a finite") == 1
    assert f"{roots[1]} diverged" in shown
    ways = [manifest.diverged(RunDirectory(root).manifest) for root in roots]
    assert ways == ["", error.removeprefix(f"error: {roots[1]}: ").strip(), ""]
    ends = [saved_frames(RunDirectory(root))[-1] for root in roots]
    assert ends == [FRAMES, (BAD_UPDATE - 1) // CHUNK * CHUNK_FRAMES, FRAMES]
    assert (widths[0], widths[-1]) == (3 * SEEDS, 2 * SEEDS)  # progress is that of the others


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--and", "--preset", "smoke"), "needs --out DIR"),
        (("--distributed", "--and", *ARGUMENTS, "--out", "b"), "--distributed trains one run"),
    ],
)
def test_runs_that_cannot_be_together_are_refused(arguments, problem, tmp_path, capsys):
    line = [*ARGUMENTS, "--out", str(tmp_path / "a"), *arguments]
    assert problem in refused(minigrid_pretrain.main, line, capsys)
    assert not list(tmp_path.iterdir())


def test_a_task_leaves_the_policies_that_did_best(tmp_path, monkeypatch):
    """All episodes of the first four iterations succeed, and none of the later ones."""

    def init(key):
        learner = LearnerState({"x": jnp.zeros(())}, Params({}, {}), (), {})
        return TrainState(learner, (), (), key, jnp.zeros((), jnp.int32))

    def iterate(state, _):
        now = state.iteration + 1
        found = dict.fromkeys(("success", "extrinsic_return"), jnp.where(now <= 4, 1.0, 0.0))
        found |= {"episodes": jnp.float32(8), "first_bad_update": jnp.float32(jnp.nan)}
        learner = state.learner._replace(policy={"x": now.astype(jnp.float32)})
        return state._replace(learner=learner, iteration=now), found

    def build(settings, mesh, *others):
        return program_of(init, iterate, settings.chunk, settings.train.iteration_frames)

    leave_unrendered(monkeypatch)
    monkeypatch.setattr("experiments.common.gridworlds.build", build)
    minigrid_tabula_rasa.main([*ARGUMENTS, "--env", "Unlock", "--out", str(tmp_path)])
    best, _ = checkpoint.read_arrays(checkpoints(RunDirectory(tmp_path).best)[-1])
    assert best["best_frames"].tolist() == [2 * CHUNK_FRAMES] * SEEDS
    assert best["learner.policy.x"].tolist() == [4.0] * SEEDS
