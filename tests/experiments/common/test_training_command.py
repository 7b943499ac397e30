"""What the training commands share: runs whose method, or world, is a file of one's own."""

import os
from functools import partial
from types import SimpleNamespace

import pytest
from rich.console import Console

from cbet_jax import own_code
from cbet_jax.intrinsic import METHODS
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.run_files import Run
from cbet_jax.runs.task_record import EarlyEnd
from experiments import minigrid_pretrain, minigrid_tabula_rasa
from experiments.common import opening, training, training_command
from experiments.common.commands import AND
from experiments.common.training_options import Asked, Opened
from tests.support.fake_program import fake_program
from tests.support.own_method import own_method
from tests.support.own_world import forget, own_world
from tests.support.refusal import refused
from tests.support.saved_runs import save_run
from tests.support.tiny import ARGUMENTS, CHUNK_FRAMES

BONUS = """
    import jax.numpy as jnp

    from cbet_jax.intrinsic.interface import Intrinsic


    def make(settings, num_actions):
        return Intrinsic("bonus", 0.5, lambda params, played: jnp.ones(played.first.shape))
"""
FAULTY = """
    import sys

    import jax.numpy as jnp

    from cbet_jax.intrinsic.interface import Intrinsic


    class Mute(Exception):
        __str__ = lambda self: 1 / 0


    def make(settings, num_actions):
        MADE


    def made(reward):
        def rewarded(params, played):
            global WHERE
            WHERE = played.steps.action[0, 0]
            return reward()

        return Intrinsic("faulty", 1.0, rewarded)


    LOADED
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.common.gridworlds.build", fake_program)
    with own_method(tmp_path, BONUS) as path:
        yield path


def test_a_run_keeps_its_own_method_and_resumes_with_it_only(file, tmp_path, capsys):
    directory = RunDirectory(tmp_path / "run")
    out, method = ["--out", str(directory.root)], ["--method", f"{file}:make"]
    minigrid_pretrain.main([*ARGUMENTS, *out, *method, "--frames", str(CHUNK_FRAMES)])
    assert directory.settings().train.method.startswith("bonus.py:make@")
    assert directory.method.read_bytes() == file.read_bytes()

    longer = [*out, "--resume", "--frames", str(2 * CHUNK_FRAMES)]
    METHODS.pop(directory.settings().train.method)  # as in another process
    line = refused(minigrid_pretrain.main, longer, capsys)
    assert line.strip().endswith(
        "if you trust it, add --method bonus.py:make, with the path of its file"
    )
    minigrid_pretrain.main([*longer, *method])
    assert f"{2 * CHUNK_FRAMES:,} frames" in capsys.readouterr().out

    file.write_text(file.read_text().replace("0.5", "0.6"))
    line = refused(minigrid_pretrain.main, [*longer, *method], capsys)
    assert line.strip().endswith("the run keeps the code that it began with")


def test_a_run_whose_own_method_may_be_why_it_ends_names_its_check(
    file, tmp_path, capsys, monkeypatch
):
    bad = partial(fake_program, bad_update=1)
    monkeypatch.setattr("experiments.common.gridworlds.build", bad)
    words = [*ARGUMENTS, "--out", str(tmp_path / "run"), "--method", f"{file}:make"]
    words += ["--own", "of=two words"]
    line = refused(minigrid_pretrain.main, words, capsys, status=4)
    said = "the loss of update 1 is not a finite number; nothing is saved"
    assert f"{said}; cbet check-method " in line
    assert line.strip().endswith("bonus.py:make --own 'of=two words' may say why")


FAULTS = {  # what stands in a file, and what is said
    "ends when loaded": ("sys.exit(0)", "", "bonus.py:26: SystemExit: 0"),
    "ends when made": ("", "sys.exit(0)", "bonus.py:14: SystemExit: 0"),
    "ends in a reward": ("", "return made(lambda: sys.exit(0))", "SystemExit: 0"),
    "an if on an array": (
        "",
        "return made(lambda: 1 if WHERE else 2)",
        "TracerBoolConversionError",
    ),
    "another shape": ("", "return made(lambda: jnp.zeros(3))", "reward must return float32[10, 2]"),
    "another type": (
        "",
        "return made(lambda: jnp.zeros((10, 2), complex))",
        "not complex64[10, 2]",
    ),
    "nothing": ("", "return made(lambda: None)", "not None"),
    "the shape of one device": (
        "",
        "return made(lambda: jnp.zeros((settings.unroll, settings.batch)))",
        "reward must return float32[10, 3], of steps and actors, not float32[10, 2]",
    ),
    "no gradient": (
        "",
        "return made(lambda: (jnp.zeros((10, 2)), (1, {})))",
        "the gradient of reward's loss cannot be compiled",
    ),
    "no text": ("", "raise Mute", "bonus.py:14: Mute: no more is said"),
    "no method": ("", "return 3", "must return an Intrinsic, not int"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_own_code_that_fails_is_told_in_one_line_and_leaves_no_run(name, tmp_path, capsys):
    loaded, made, line = FAULTS[name]
    content = FAULTY.replace("LOADED", loaded or "pass").replace("MADE", made or "pass")
    with own_method(tmp_path, content) as path:
        words = [*ARGUMENTS, "--envs", "Unlock", "--out", str(tmp_path / "run")]
        found = refused(minigrid_pretrain.main, [*words, "--method", f"{path}:make"], capsys)
    assert line in found
    assert not (tmp_path / "run").exists()


def test_own_code_is_read_from_ordinary_files_only(tmp_path, capsys):
    os.mkfifo(tmp_path / "bonus.py")
    words = [*ARGUMENTS, "--method", f"{tmp_path / 'bonus.py'}:make"]
    assert "it is no ordinary file" in refused(minigrid_pretrain.main, words, capsys)


def test_a_run_keeps_its_own_worlds_and_resumes_with_them_only(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("experiments.common.gridworlds.build", fake_program)
    with own_world(tmp_path) as path:
        directory = RunDirectory(tmp_path / "run")
        out = ["--out", str(directory.root)]
        worlds = ["--envs", f"{path}:make", "Unlock", f"{path}:two"]
        minigrid_pretrain.main([*ARGUMENTS, *out, *worlds, "--frames", str(CHUNK_FRAMES)])
        kept = directory.settings().environments
        digest = own_code.load(f"{path}:make")[0].partition("@")[2]
        assert kept == (f"my_world.py:make@{digest}", "Unlock", f"my_world.py:two@{digest}")
        assert directory.world(1).read_bytes() == path.read_bytes()
        assert not directory.world(2).exists()  # both functions are in one file

        longer = [*out, "--resume", "--frames", str(2 * CHUNK_FRAMES)]
        forget()  # as in another process
        line = refused(minigrid_pretrain.main, longer, capsys)
        assert "name it on the command line, with --envs my_world.py:make" in line
        minigrid_pretrain.main([*longer, *worlds])
        assert f"{2 * CHUNK_FRAMES:,} frames" in capsys.readouterr().out

        line = refused(minigrid_pretrain.main, [*longer, "--envs", *worlds[:0:-1]], capsys)
        assert "other settings" in line
        assert "code" not in line  # they are the same, in another order
        path.write_text(path.read_text().replace("within 9", "within 8"))
        line = refused(minigrid_pretrain.main, [*longer, *worlds], capsys)
        assert line.strip().endswith("the run keeps the code that it began with")


@pytest.mark.parametrize("second", ["occupied", "new"])
def test_runs_that_cannot_be_joined_leave_nothing(second, tmp_path, capsys):
    (tmp_path / "occupied").mkdir()
    (tmp_path / "occupied" / "notes.txt").touch()
    words = [*ARGUMENTS, "--out", str(tmp_path / "new")]
    joined = [*words, AND, *ARGUMENTS, "--out", str(tmp_path / second)]
    said = refused(minigrid_pretrain.main, joined, capsys)
    assert ("is not empty" if second == "occupied" else "have the directory") in said
    assert not (tmp_path / "new").exists()


def test_joined_runs_that_had_all_finished_are_said_to_have(tmp_path, capsys, monkeypatch):
    finished = save_run(tmp_path / "run")
    settings = finished.settings()
    monkeypatch.setattr(training_command, "saved_frames", lambda run: {settings.train.frames})
    words = ["--out", str(finished.root), "--resume"]
    minigrid_pretrain.main([*words, AND, *words])
    assert capsys.readouterr().out == "all of these runs had already finished\n"
    assert f"{AND} joins runs" in refused(minigrid_pretrain.main, [AND], capsys)


def test_the_rule_that_ends_a_task_reaches_its_training(tmp_path, monkeypatch):
    asked = []

    def train(runs, program, host):
        asked.append(host)
        raise InterruptedError

    monkeypatch.setattr(training, "train_together", train)
    words = ["--env", "Unlock", "--preset", "smoke", "--until-success", "0.9", "--until", "800"]
    words += ["--success-frames", "700", "--without-success", "600", "--keep-at", "500"]
    words += ["--out", str(tmp_path / "run"), "--checkpoint-seconds", "3"]
    options, stored = opening.read(minigrid_tabula_rasa.EXPERIMENT, words)
    program = SimpleNamespace(iterations_per_chunk=1, frames_per_iteration=100)
    given = [Asked(options, stored, ())], [Run(None, options.settings)]
    with pytest.raises(InterruptedError):
        training._train(minigrid_tabula_rasa.EXPERIMENT, *given, Opened([], program), Console())
    (host,) = asked
    assert host.early_end == EarlyEnd(0.9, 700, 600)
    assert (host.until, host.keep_at, host.checkpoint_seconds) == (800, (500,), 3)
