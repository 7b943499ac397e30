"""The plan of a study, and its jobs with a stand-in for training."""

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from cbet_jax import checkpoint, metrics
from cbet_jax.run_directory import RunDirectory
from experiments import minigrid_evaluate, paper
from experiments.presets import PRESETS
from experiments.study import execute
from experiments.study.plan import Selection, StudySettings, plan
from tests.experiments.small_study import (
    ARGUMENTS,
    CHUNK_FRAMES,
    CHUNKS,
    FRAMES,
    TINY,
    walking,
)
from tests.experiments.test_faults import refused

ALL = Selection(("cbet", "count"), ("MultiEnv", "DoorKey"), ("Unlock",), ("Unlock", "DoorKey-8x8"))


@pytest.fixture(scope="module")
def small():
    """Small runs, trained by the stand-in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "smoke", TINY)
        patch.setattr(execute, "build", walking)
        yield patch


@pytest.fixture(scope="module")
def unbroken(small, tmp_path_factory) -> Path:
    """A study that was never interrupted."""
    root = tmp_path_factory.mktemp("unbroken") / "study"
    paper.main([*ARGUMENTS, "--out", str(root)])
    return root


def contents(root: Path) -> dict[str, bytes]:
    """Returns the numbers of a study: metrics and tables."""
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*.csv"))}


def test_the_plan_says_all_that_is_done_and_where(tmp_path):
    jobs = plan(tmp_path, StudySettings("laptop", 24_000_000, 3, 100, (12_000_000,)), ALL)
    assert Counter(job.stage for job in jobs) == {
        "pretrain": 4,
        "evaluation": 8,
        "transfer": 4,
        "tabula_rasa": 2,
    }
    where = {str(job.root.relative_to(tmp_path)): job for job in jobs}
    assert len(where) == len(jobs)
    run = where["pretrain/MultiEnv/cbet"]
    assert (run.frames, run.settings.seeds) == (24_000_000, 3)
    assert run.worlds == PRESETS["laptop"].environments
    evaluation = where["evaluation/DoorKey/count/12000000"]
    assert evaluation.source == tmp_path / "pretrain/DoorKey/count"
    transfer = where["transfer/Unlock/MultiEnv-cbet"]
    assert transfer.frames >= 2_400_000  # 5 M in proportion to 50 M
    assert transfer.settings.transfer.frames == 24_000_000
    assert transfer.settings.train.method == "none"
    tabula_rasa = where["tabula_rasa/Unlock/cbet"].settings
    assert not tabula_rasa.explore
    assert not tabula_rasa.train.counts.random_resets
    assert sum(job.new_frames for job in jobs) == 3 * (4 * 24_000_000 + 6 * transfer.frames)
    assert not any(job.done for job in jobs)


def test_a_study_leaves_all_that_it_should(unbroken):
    jobs = plan(
        unbroken,
        StudySettings("smoke", FRAMES, 2, 2, (50,)),
        Selection(("cbet", "count"), ("DoorKey",), ("DoorKey-8x8",), ("Unlock",)),
    )
    assert all(job.done for job in jobs)
    kept = RunDirectory(unbroken / "pretrain/DoorKey/cbet").policies
    assert [int(path.name) for path in checkpoint.checkpoints(kept)] == [2 * CHUNK_FRAMES, FRAMES]


def test_nothing_done_is_done_twice(unbroken, small, capsys):
    before = {path: path.stat().st_mtime_ns for path in unbroken.rglob("*.csv")}

    def never(*_):
        raise AssertionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "train", never)
        patch.setattr(minigrid_evaluate, "play", never)
        paper.main([*ARGUMENTS, "--out", str(unbroken)])
    runs = [path for path in before if path.parent != unbroken]
    assert {path: path.stat().st_mtime_ns for path in runs} == {p: before[p] for p in runs}


def test_a_study_killed_again_and_again_ends_with_the_same_numbers(unbroken, small, tmp_path):
    root = tmp_path / "study"
    # In the second pre-training run, in the second transfer, and in the first tabula rasa.
    for chunk in (CHUNKS + 2, 2 * CHUNKS + 1, CHUNKS + 3):
        program = [sys.executable, "-m", "tests.experiments.small_study", str(chunk)]
        ended = subprocess.run([*program, *ARGUMENTS, "--out", str(root)], check=False, timeout=300)
        assert ended.returncode == -signal.SIGKILL
    assert contents(root) != contents(unbroken)
    paper.main([*ARGUMENTS, "--out", str(root)])
    assert contents(root) == contents(unbroken)


def test_a_signal_saves_and_ends_the_study(unbroken, small, tmp_path, capsys):
    append, root = metrics.Table.append, tmp_path / "study"

    def append_and_interrupt(*arguments):
        signal.raise_signal(signal.SIGTERM)
        return append(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics.Table, "append", append_and_interrupt)
        with pytest.raises(SystemExit) as stop:
            paper.main([*ARGUMENTS, "--out", str(root)])
    assert stop.value.code == 128 + signal.SIGTERM
    assert f"stopped and saved at {CHUNK_FRAMES} frames" in capsys.readouterr().out
    paper.main([*ARGUMENTS, "--out", str(root), "--plan"])
    assert f"at {CHUNK_FRAMES}  pretrain DoorKey cbet" in capsys.readouterr().out


def test_a_moved_study_goes_on(unbroken, small, tmp_path, monkeypatch):
    """It can be called by another name, too, though runs of transfer say where they are from."""
    moved = tmp_path / "moved"
    moved.symlink_to(unbroken)
    monkeypatch.chdir(tmp_path)
    paper.main([*ARGUMENTS, "--out", "moved", "--plan"])
    paper.main([*ARGUMENTS, "--out", "moved"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--methods", "cbett"], "unknown method 'cbett'; nearest: cbet"),
        (["--methods", "cbet", "cbet"], "method 'cbet' is named twice"),
        (["--setups", "Multienv"], "nearest: MultiEnv"),
        (["--tasks", "Unlokc"], "Unlock"),
        (["--preset", "lptop"], "laptop"),
        (["--seeds", "0"], "seeds must be at least 1"),
        (["--episodes", "0"], "episodes must be at least 1"),
        (["--budget", "39", "--evaluate-at", "20"], "less than a chunk (40)"),
        (
            ["--budget", "200", "--tasks", "Unlock"],
            "gives transfer DoorKey-cbet 20 frames, less than a chunk (40)",
        ),
        (["--evaluate-at", "161"], "evaluate_at must lie in 1..160, not 161"),
    ],
)
def test_bad_studies_are_refused(arguments, expected, small, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert expected in refused(paper.main, [*ARGUMENTS, *arguments, "--out", "study"], capsys)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--budget", "200"], "other settings: budget is 160, not 200"),
        (["--seeds", "3"], "other settings: seeds is 2, not 3"),
        (["--preset", "laptop"], "other settings: preset is smoke, not laptop"),
    ],
)
def test_a_study_goes_on_as_it_began(arguments, expected, unbroken, small, capsys):
    given = ["--preset", "smoke", "--out", str(unbroken)]
    assert expected in refused(paper.main, [*given, *arguments], capsys)


def test_damaged_studies_are_refused(unbroken, small, tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("all my work")
    arguments = [*ARGUMENTS, "--out", str(tmp_path)]
    assert "not empty and holds no study" in refused(paper.main, arguments, capsys)
    (tmp_path / "study.json").write_text("{")
    assert "study.json cannot be read" in refused(paper.main, arguments, capsys)
    run = RunDirectory(unbroken / "pretrain/DoorKey/count")
    config, arguments = run.config.read_text(), [*ARGUMENTS, "--out", str(unbroken)]
    try:
        run.config.write_text(config.replace('"discount": 0.99', '"discount": 0.9'))
        error = refused(paper.main, arguments, capsys)
        assert "count was started with other settings: train.loss.discount is 0.9" in error
        run.config.write_text("{")
        assert "config.json cannot be read" in refused(paper.main, arguments, capsys)
    finally:
        run.config.write_text(config)
    with RunDirectory(unbroken).lock():
        assert "in use" in refused(paper.main, arguments, capsys)


def test_a_damaged_policy_is_refused(unbroken, small, tmp_path, capsys):
    (table,) = unbroken.glob("evaluation/DoorKey/cbet/80/Unlock.csv")
    (policy,) = unbroken.glob("pretrain/DoorKey/cbet/policies/*80/checkpoint.json")
    kept, record = table.read_bytes(), policy.read_text()
    try:
        table.unlink()
        policy.write_text("{}")
        error = refused(paper.main, [*ARGUMENTS, "--out", str(unbroken)], capsys)
        assert "000000000080 is damaged" in error
    finally:
        table.write_bytes(kept)
        policy.write_text(record)
