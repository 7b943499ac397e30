"""The plan of a study, and its jobs with a stand-in for training."""

import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cbet_jax.runs import checkpoint, metrics_table
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.memory import NotEnoughMemoryError
from experiments import minigrid_ablation, noisy_tv, paper, report
from experiments.common.endings import NOT_FINITE
from experiments.common.presets import PRESETS
from experiments.evaluation import gridworlds
from experiments.study import costs, execute, results
from experiments.study.plan import (
    TABULA_RASA,
    TRANSFER,
    Selection,
    StudySettings,
    plan,
    reached,
)
from experiments.sweeps import command as sweep
from tests.support.refusal import refused
from tests.support.small_study import (
    ARGUMENTS,
    CHUNK_FRAMES,
    CHUNKS,
    FRAMES,
    TINY,
    playing,
    walking,
)
from tests.support.tiny import SEEDS
from tests.support.unrendered import leave_unrendered, render

ALL = Selection(("cbet", "count"), ("MultiEnv", "DoorKey"), ("Unlock",), ("Unlock", "DoorKey-8x8"))


@pytest.fixture(scope="module")
def small():
    """Small runs, trained by the stand-in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "smoke", TINY)
        patch.setattr(execute, "build", walking)
        patch.setattr(gridworlds, "play_each_world", playing)
        leave_unrendered(patch)
        yield patch


@pytest.fixture(scope="module")
def unbroken(small, tmp_path_factory) -> Path:
    """A study that was never interrupted. Its pictures are rendered."""
    root = tmp_path_factory.mktemp("unbroken") / "study"
    with pytest.MonkeyPatch.context() as patch:
        render(patch)
        paper.main([*ARGUMENTS, "--out", str(root)])
    return root


def contents(root: Path) -> dict[str, bytes]:
    """Return the numbers of a study: metrics and tables."""
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*.csv"))}


def test_the_plan_says_all_that_is_done_and_where(tmp_path):
    jobs = plan(tmp_path, StudySettings("laptop", 24_000_000, 3, 100, (9_600_000,)), ALL)
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
    evaluation = where["evaluation/DoorKey/count/9600000"]
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
        Selection(("cbet",), ("DoorKey",), ("DoorKey-8x8",), ("Unlock",)),
    )
    assert all(job.done for job in jobs)
    kept = RunDirectory(unbroken / "pretrain/DoorKey/cbet").policies
    assert [int(path.stem) for path in checkpoint.checkpoints(kept)] == [2 * CHUNK_FRAMES, FRAMES]
    text = (unbroken / "report.html").read_text()
    pictures = list((unbroken / "report-figures").iterdir())
    assert {path.stem for path in pictures} >= {"pretraining", "tasks"}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert text.count("data:image/png;base64,") == len(pictures)


def test_nothing_done_is_done_twice(unbroken, small, capsys):
    before = {path: path.stat().st_mtime_ns for path in unbroken.rglob("*/*/*.csv")}

    def never(*_):
        raise AssertionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "train", never)
        patch.setattr(gridworlds, "play_each_world", never)
        paper.main([*ARGUMENTS, "--out", str(unbroken)])
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.parametrize(
    "chunks",
    [
        (CHUNKS + 1,),  # of pre-training and of transfer together
        # Of pre-training, then (after what was left of it) of transfer:
        pytest.param((2, CHUNKS), marks=pytest.mark.slow),
    ],
)
def test_a_study_killed_again_and_again_ends_with_the_same_numbers(
    chunks, unbroken, small, tmp_path
):
    root = tmp_path / "study"
    for chunk in chunks:
        program = [sys.executable, "-m", "tests.support.small_study", str(chunk)]
        ended = subprocess.run([*program, *ARGUMENTS, "--out", str(root)], check=False, timeout=300)
        assert ended.returncode == -signal.SIGKILL
    assert contents(root) != contents(unbroken)
    paper.main([*ARGUMENTS, "--out", str(root)])
    assert contents(root) == contents(unbroken)


def test_runs_can_be_left_at_equal_frames_for_now(unbroken, small, tmp_path, capsys):
    arguments = [*ARGUMENTS, "--out", str(tmp_path / "study")]
    paper.main([*arguments, "--until", "50"])
    assert "no tasks now: they are learnt after the end" in capsys.readouterr().out
    run = tmp_path / "study" / "pretrain/DoorKey/cbet"
    assert reached(run) == 2 * CHUNK_FRAMES  # where the chunk ends that reaches 50
    evaluated = (tmp_path / "study" / "evaluation").glob("*/*/*")
    assert {path.name for path in evaluated} == {str(2 * CHUNK_FRAMES)}
    assert not (tmp_path / "study" / "transfer").exists()
    paper.main([*arguments, "--until", "50", "--plan"])
    assert ", 0 to go" in capsys.readouterr().out
    paper.main(arguments)
    assert contents(tmp_path / "study") == contents(unbroken)
    paper.main([*arguments, "--until", "50", "--plan"])
    assert ", 0 to go" in capsys.readouterr().out


def test_tasks_can_be_left_for_now(unbroken, small, tmp_path):
    root = tmp_path / "study"
    arguments = [*ARGUMENTS, "--out", str(root)]
    paper.main([*arguments, "--tasks-until", "50"])
    for run in ("transfer/DoorKey-8x8/DoorKey-cbet", "tabula_rasa/DoorKey-8x8/cbet"):
        assert reached(root / run) == 2 * CHUNK_FRAMES
    found = [row for row in results.read(root / "results.csv") if row.stage == TABULA_RASA]
    assert max(row.frames for row in found) == 2 * CHUNK_FRAMES
    paper.main(arguments)
    assert contents(root) == contents(unbroken)


def test_a_run_that_has_saved_nothing_yet_does_not_stop_the_report(unbroken, small, tmp_path):
    """As while it compiles, or when it was killed there."""
    root = shutil.copytree(unbroken, tmp_path / "study")
    run = RunDirectory(root / "tabula_rasa/DoorKey-8x8/cbet")
    run.metrics.unlink()
    shutil.rmtree(run.checkpoints)
    run = RunDirectory(root / "transfer/DoorKey-8x8/DoorKey-cbet")
    run.metrics.unlink()  # it begins with a checkpoint, to which pre-trained policies are copied
    newest, *others = reversed(checkpoint.checkpoints(run.checkpoints))
    newest.rename(checkpoint.path_at(run.checkpoints, 0))
    for old in others:
        old.unlink()
    paper.main(["--out", str(root), "--report-only"])
    found, wanted = (results.read(study / "results.csv") for study in (root, unbroken))
    begun = ("DoorKey", "cbet", TRANSFER)
    assert found == [
        row
        for row in wanted
        if row.stage != TABULA_RASA and (row.setup, row.method, row.stage) != begun
    ]
    assert len(found) < len(wanted)


def test_results_of_which_no_files_are_left_are_kept(unbroken, small, tmp_path, capsys):
    root = shutil.copytree(unbroken, tmp_path / "study")
    before = (root / "results.csv").read_bytes()
    paper.main(["--out", str(root), "--report-only"])
    assert not list(root.glob("results-*"))
    shutil.rmtree(root / "tabula_rasa")
    capsys.readouterr()
    paper.main(["--out", str(root), "--report-only"])
    assert "results-earlier.csv is the earlier results.csv" in capsys.readouterr().out
    assert (root / "results-earlier.csv").read_bytes() == before
    left = {row.stage for row in results.read(root / "results.csv")}
    assert TABULA_RASA not in left
    assert TRANSFER in left
    paper.main(["--out", str(root), "--report-only"])
    assert [path.name for path in root.glob("results-*")] == ["results-earlier.csv"]


def test_policies_are_evaluated_where_a_run_is_left_for_now(small, tmp_path):
    """Also if `--evaluate-at` does not name these frames."""
    arguments = [word for word in ARGUMENTS if word not in ("--evaluate-at", "50")]
    root = tmp_path / "study"
    paper.main([*arguments, "--out", str(root), "--until", "50"])
    evaluated = root / "evaluation/DoorKey/cbet"
    assert {path.name for path in evaluated.iterdir()} == {str(2 * CHUNK_FRAMES)}
    paper.main([*arguments, "--out", str(root)])
    assert {path.name for path in evaluated.iterdir()} == {str(2 * CHUNK_FRAMES), str(FRAMES)}


def test_a_study_does_not_wait_for_policies_that_nobody_will_save(
    unbroken, small, tmp_path, capsys
):
    root = shutil.copytree(unbroken, tmp_path / "study")
    frames = str(2 * CHUNK_FRAMES)
    run = RunDirectory(root / "pretrain/DoorKey/cbet")
    for saved in (*checkpoint.checkpoints(run.policies), *checkpoint.checkpoints(run.checkpoints)):
        if int(saved.stem) < FRAMES:
            saved.unlink()
    shutil.rmtree(root / "evaluation/DoorKey/cbet" / frames)
    line = refused(paper.main, [*ARGUMENTS, "--out", str(root)], capsys)
    assert f"cbet is trained, and holds no policies after {frames} frames: delete it" in line


def test_stages_are_done_one_by_one(unbroken, small, tmp_path, capsys):
    root = tmp_path / "study"
    words = [*ARGUMENTS, "--out", str(root), "--stages"]
    for stage in ("evaluation", "transfer"):
        assert "holds no study" in refused(paper.main, [*words, stage], capsys)
    assert "nothing is asked for" in refused(paper.main, words, capsys)
    before_its_end = [*words, "transfer", "--until", "50"]
    assert "nothing is asked for" in refused(paper.main, before_its_end, capsys)
    assert not root.exists()
    paper.main([*words, "tabula_rasa"])
    assert {path.name for path in root.glob("*/")} == {"tabula_rasa", "report-figures"}
    capsys.readouterr()
    line = refused(paper.main, [*words, "transfer"], capsys)
    assert f"cbet holds no policies after {FRAMES} frames (name the stage pretrain, too)" in line
    for stages in (["transfer", "pretrain"], ["evaluation"]):
        paper.main([*words, *stages])
    assert contents(root) == contents(unbroken)


def test_stages_do_all_that_needs_no_missing_policies(unbroken, small, tmp_path, capsys):
    root = shutil.copytree(unbroken, tmp_path / "study")
    shutil.rmtree(root / "transfer")
    words = [*ARGUMENTS, "--methods", "rnd", "cbet", "--out", str(root), "--stages", "transfer"]
    line = refused(paper.main, words, capsys)
    assert "pretrain/DoorKey/rnd holds no policies" in line
    assert "all that does not need that is done" in line
    assert contents(root) == contents(unbroken)
    (root / "pretrain/DoorKey/rnd").mkdir()
    (root / "pretrain/DoorKey/rnd/diverged.txt").write_text("the loss is nan\n")
    assert "pretrain/DoorKey/rnd diverged;" in refused(paper.main, words, capsys, NOT_FINITE)


def test_policies_are_all_that_tasks_need_of_a_run(unbroken, small, tmp_path, capsys):
    root = shutil.copytree(unbroken, tmp_path / "study")
    for run in root.glob("pretrain/*/*"):
        shutil.rmtree(run / "checkpoints")
        (run / "metrics.csv").unlink()
    shutil.rmtree(root / "transfer")
    paper.main([*ARGUMENTS, "--out", str(root)])
    assert "] pretrain" not in capsys.readouterr().out
    before = contents(unbroken / "transfer")
    assert before
    assert contents(root / "transfer") == before


def test_damaged_evaluations_are_named(unbroken, small, tmp_path, capsys):
    root = shutil.copytree(unbroken, tmp_path / "study")
    table = root / f"evaluation/DoorKey/cbet/{FRAMES}/Unlock.csv"
    header, row, *_ = table.read_text().splitlines()
    table.write_text(f"{header}\n{row[: len(row) // 3]}\n")
    report = ["--out", str(root), "--report-only"]
    assert f"{table} cannot be read" in refused(paper.main, report, capsys)
    shutil.copytree(table.parent, table.parent.with_name("old"))
    shutil.copy(unbroken / table.relative_to(root), table)
    assert "cbet/old/Unlock.csv cannot be read" in refused(paper.main, report, capsys)


def test_a_study_stops_where_drawing_was_asked_to(small, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(execute, "draw_figures", lambda run: ([], signal.SIGTERM))
    root = tmp_path / "study"
    with pytest.raises(SystemExit) as stop:
        paper.main([*ARGUMENTS, "--out", str(root)])
    assert stop.value.code == 128 + signal.SIGTERM
    assert reached(root / "pretrain/DoorKey/cbet") == FRAMES
    assert not (root / "evaluation").exists()


def test_a_signal_saves_and_ends_the_study(unbroken, small, tmp_path, capsys):
    append, root = metrics_table.Table.append, tmp_path / "study"

    def append_and_interrupt(*arguments):
        signal.raise_signal(signal.SIGTERM)
        return append(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics_table.Table, "append", append_and_interrupt)
        with pytest.raises(SystemExit) as stop:
            paper.main([*ARGUMENTS, "--out", str(root)])
    assert stop.value.code == 128 + signal.SIGTERM
    assert f"stopped and saved at {CHUNK_FRAMES} frames" in capsys.readouterr().out
    paper.main([*ARGUMENTS, "--out", str(root), "--plan", "--verbose"])
    assert f"at {CHUNK_FRAMES}  pretrain DoorKey cbet" in capsys.readouterr().out


def diverging(method, chunk):
    """Return the stand-in for training; runs of a method diverge in a chunk from their start."""

    def build(settings, mesh=None):
        program = walking(settings, mesh)
        if settings.train.method != method or settings.transfer or not settings.explore:
            return program
        chunks = []

        class Compiled:
            def lower(self, template):
                return self

            def compile(self):
                return self

            def memory_analysis(self):
                return None

            def __call__(self, state):
                state, found = program.advance(state)
                chunks.append(1)
                update = 0.0 if len(chunks) == chunk else np.nan
                return state, {**found, "first_bad_update": np.full_like(found["success"], update)}

        return program._replace(advance=Compiled())

    return build


def test_a_run_that_diverges_stops_only_what_needs_it(unbroken, small, tmp_path, capsys):
    """Its first two chunks are good, and the policies there are evaluated."""
    root = tmp_path / "study"
    arguments = [*ARGUMENTS, "--methods", "cbet", "count", "--out", str(root)]
    for chunk in (CHUNKS, 1):  # it diverges again where it did
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(execute, "build", diverging("cbet", chunk))
            with pytest.raises(SystemExit) as stop:
                paper.main(arguments)
        shown = capsys.readouterr()
        assert stop.value.code == 1
        run = root / "pretrain/DoorKey/cbet"
        assert shown.err.startswith(f"error: {run} diverged; all that does not need that is")
        assert shown.err.count("\n") == 1
        assert f"{run} diverged: the loss of update 5 is not a finite number" in shown.out
        assert f"in Unlock, 2 seeds after 120 frames: left out, as {run} diverged" in shown.out
        assert reached(run) == 2 * CHUNK_FRAMES
        assert reached(root / "pretrain/DoorKey/count") == FRAMES
        assert (root / f"evaluation/DoorKey/cbet/{2 * CHUNK_FRAMES}/Unlock.csv").exists()
        assert not (root / f"evaluation/DoorKey/cbet/{FRAMES}").exists()
        assert {path.name for path in root.glob("transfer/*/*")} == {"DoorKey-count"}
        assert {path.name for path in root.glob("tabula_rasa/*/*")} == {"cbet", "count"}
        text = (root / "report.html").read_text()
        assert "Diverged after 80 frames, and is reported until there: pretrain DoorKey" in text
        assert "<td>DoorKey</td><td>C-BET</td><td>diverged</td>" in text
    paper.main(arguments)  # with what does not diverge
    assert "iverged" not in (root / "report.html").read_text()
    ours = {name: numbers for name, numbers in contents(root).items() if "count" not in name}
    wanted = contents(unbroken)
    for name in ours.keys() - {"results.csv"}:
        assert ours[name] == wanted[name], name


def test_a_run_that_memory_has_no_room_for_stops_only_what_needs_it(small, tmp_path, capsys):
    def build(settings, mesh=None):
        if settings.train.method == "cbet" and settings.explore:
            raise NotEnoughMemoryError("training keeps 21.0 GiB")
        return walking(settings, mesh)

    root = tmp_path / "study"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "build", build)
        with pytest.raises(SystemExit) as stop:
            paper.main([*ARGUMENTS, "--methods", "cbet", "count", "--out", str(root)])
    shown, run = capsys.readouterr(), root / "pretrain/DoorKey/cbet"
    assert stop.value.code == 2
    assert shown.err == (
        f"error: {run} does not fit into memory; all that does not need that is done\n"
    )
    assert f"{run} does not fit into memory: training keeps 21.0 GiB" in shown.out
    assert f"left out, as {run} does not fit into memory" in shown.out
    assert not run.exists()
    assert reached(root / "pretrain/DoorKey/count") == FRAMES
    assert {path.name for path in root.glob("transfer/*/*")} == {"DoorKey-count"}
    assert {path.name for path in root.glob("tabula_rasa/*/*")} == {"cbet", "count"}


def test_the_report_is_drawn_anew_from_the_results_or_the_directory(
    unbroken, small, tmp_path, capsys
):
    for source in (unbroken / "results.csv", unbroken):
        path = tmp_path / f"{source.stem}.html"
        report.main([str(source), "--out", str(path)])
        there, again = ((unbroken / "report.html").read_text(), path.read_text())
        assert re.findall("<td>.*?</td>", again) == re.findall("<td>.*?</td>", there)
    (tmp_path / "results.csv").write_text("a,b\n1,2\n")
    broken = [str(tmp_path / "results.csv")]
    assert "its columns are not stage,setup" in refused(report.main, broken, capsys)
    (tmp_path / "results.csv").write_text('stage,"' + "x" * 200_000)
    assert "results.csv cannot be read: field larger" in refused(report.main, broken, capsys)
    assert "nowhere.csv cannot be read" in refused(report.main, ["nowhere.csv"], capsys)
    nothing = ["--report-only", "--out", str(tmp_path / "new")]
    assert "new holds no study" in refused(paper.main, nothing, capsys)


@pytest.mark.parametrize(
    ("main", "runs"), [(minigrid_ablation.main, 54), (noisy_tv.main, 8), (paper.main, 15)]
)
def test_each_study_has_its_runs(main, runs, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main(["--preset", "laptop", "--plan"])
    summary = capsys.readouterr().out
    assert "to do" not in summary
    assert "no pre-training of 128 actors was measured here" in summary
    assert "--preset laptop --network.factors float32 --frames " in summary
    main(["--preset", "laptop", "--plan", "--verbose"])
    shown = capsys.readouterr().out
    assert shown.count("to do  pretrain ") == shown.count("to do  evaluation ") == runs
    assert f"{runs * 3 * 24_000_000:,} frames in all" in shown


def test_the_plan_says_the_hours_by_the_last_speeds(unbroken, small, tmp_path, capsys):
    """The speed of the method itself counts, else that of its kind, at these sizes, here."""
    root = shutil.copytree(unbroken, tmp_path / "study")
    assert json.loads((root / "evaluation/measured.json").read_text())["table_seconds"] >= 0
    manifest = root / "pretrain/DoorKey/cbet/manifest.json"
    session = json.loads(manifest.read_text())["sessions"][-1]
    session |= {"frames_per_second": 2 * FRAMES * SEEDS / 3600, "compile_seconds": 1800.0}
    manifest.write_text(json.dumps({"sessions": [session]}))
    for other in ("tabula_rasa/DoorKey-8x8/cbet", "transfer/DoorKey-8x8/DoorKey-cbet"):
        (root / other / "manifest.json").unlink()
    new = [*ARGUMENTS, "--methods", "cbet", "count", "--tasks", "--out", str(root), "--plan"]
    paper.main([*new, "--setups", "DoorKey", "MultiEnv", "KeyCorridor"])
    shown = capsys.readouterr().out
    # five runs to do, each half an hour of compiling and half an hour of frames
    assert "about 5.0 hours; " in shown
    assert "as the slowest measured method of their kind: count" in shown
    assert f"in {root / 'pretrain/DoorKey/cbet'} " in shown
    with_tasks = ["--tasks", "DoorKey-8x8", "--out", str(root), "--plan"]
    paper.main([*ARGUMENTS, "--methods", "cbet", "count", *with_tasks])
    shown = capsys.readouterr().out
    # no transfer was measured; of count, pre-training and tabula rasa are left
    assert "about 2.0 hours, without what was not measured here (1 of transfer); at least" in shown
    assert "no pre-training" not in shown
    session["cpu_count"] = 1000
    manifest.write_text(json.dumps({"sessions": [session]}))
    paper.main(new)
    actors = TINY.train.worlds
    assert f"no pre-training of {actors} actors was measured here" in capsys.readouterr().out


def test_the_defaults_of_smoke_make_a_study_with_all_stages(capsys, tmp_path):
    paper.main(["--preset", "smoke", "--out", str(tmp_path / "study"), "--plan", "--verbose"])
    shown = capsys.readouterr().out
    for stage in ("pretrain", "evaluation", "transfer", "tabula_rasa"):
        assert f"to do  {stage} " in shown


def test_a_study_whose_last_table_another_process_wrote_keeps_the_measure_it_has(tmp_path):
    costs.record_evaluations(tmp_path, 0.1, tables=0)
    assert not list(tmp_path.iterdir())


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
        (["--methods", "cbett"], "unknown method 'cbett'; did you mean cbet"),
        (["--methods", "cbet", "cbet"], "method 'cbet' is named twice"),
        (["--setups", "Multienv"], "did you mean MultiEnv"),
        (["--tasks", "Unlokc"], "Unlock"),
        (["--preset", "lptop"], "laptop"),
        (["--seeds", "0"], "seeds must be at least 1"),
        (["--episodes", "0"], "episodes must be at least 1"),
        (["--budget", "39", "--evaluate-at", "20"], "less than a chunk (40)"),
        (
            ["--budget", "200", "--tasks", "Unlock"],
            "gives transfer DoorKey-cbet 20 frames, less than a chunk (40)",
        ),
        (["--evaluate-at", "121"], "evaluate_at must be in 1..120, not 121"),
        (["--until", "121"], "until must be in 1..120, not 121"),
        (["--tasks-until", "0"], "tasks_until must be at least 1, not 0"),
        (["--preset", ""], "unknown preset ''"),
    ],
)
def test_bad_studies_are_refused(arguments, expected, small, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert expected in refused(paper.main, [*ARGUMENTS, *arguments, "--out", "study"], capsys)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--budget", "200"], "other settings: budget is 120, not 200"),
        (["--seeds", "3"], "other settings: seeds is 2, not 3"),
        (["--preset", "laptop"], "other settings: preset is smoke, not laptop"),
    ],
)
def test_a_study_goes_on_as_it_began(arguments, expected, unbroken, small, capsys):
    given = ["--preset", "smoke", "--out", str(unbroken)]
    assert expected in refused(paper.main, [*given, *arguments], capsys)


def test_a_run_begun_with_other_settings_is_refused(unbroken, small, tmp_path, capsys):
    """By somebody else, in the directory of the study."""
    root = tmp_path / "study"
    run = RunDirectory(root / "pretrain/DoorKey/cbet")
    settings = RunDirectory(unbroken / "pretrain/DoorKey/cbet").settings()
    run.create(replace(settings, first_seed=7))
    shutil.copy(unbroken / "study.json", root)
    error = refused(paper.main, [*ARGUMENTS, "--out", str(root)], capsys)
    assert f"{run.root} was started with other settings: first_seed is 7, not 0" in error
    assert not list(root.rglob("*.csv"))


def test_damaged_studies_are_refused(unbroken, small, tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("all my work")
    arguments = [*ARGUMENTS, "--out", str(tmp_path)]
    assert "not empty and holds no study" in refused(paper.main, arguments, capsys)
    (tmp_path / "study.json").write_text("{")
    assert "study.json cannot be read" in refused(paper.main, arguments, capsys)
    run = RunDirectory(unbroken / "pretrain/DoorKey/cbet")
    config, arguments = run.config.read_text(), [*ARGUMENTS, "--out", str(unbroken)]
    try:
        for damaged in (config.replace('"discount": 0.99', '"discount": 0.9'), "{"):
            run.config.write_text(damaged)
            paper.main(arguments)
            assert "using the settings that a checkpoint holds" in capsys.readouterr().err
    finally:
        run.config.write_text(config)


def test_processes_share_a_study_run_by_run(unbroken, small, tmp_path, capsys, monkeypatch):
    """What another process trains is left to it, until it stops."""
    run = RunDirectory(tmp_path / "pretrain/DoorKey/cbet")
    shutil.copytree(unbroken / "pretrain/DoorKey/cbet", run.root)
    shutil.copy(unbroken / "study.json", tmp_path)
    for path in (*run.checkpoints.glob("*"), *run.policies.glob("*")):
        shutil.rmtree(path)
    waited = []
    with contextlib.ExitStack() as other:
        other.enter_context(run.lock())
        monkeypatch.setattr(execute, "time", SimpleNamespace(
            monotonic=time.monotonic, sleep=lambda s: (waited.append(s), other.close())
        ))  # fmt: skip
        paper.main([*ARGUMENTS, "--out", str(tmp_path)])
    said = capsys.readouterr().out
    assert waited == [execute.WAIT_SECONDS]
    tabula_rasa, waiting = (
        said.index("tabula_rasa"),
        said.index(f"waiting for other processes, in {run.root}"),
    )
    assert tabula_rasa < waiting < said.index("] pretrain")
    assert (tmp_path / "results.csv").read_bytes() == (unbroken / "results.csv").read_bytes()


def test_a_cluster_gets_the_command_once_for_each_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SUBMITIT_LOG_LEVEL", "NOCONFIG")  # or it takes pytest's handlers away
    submitted = []
    queue = SimpleNamespace(
        submit_command=lambda *job: (submitted.append(job), str(len(submitted)))[1]
    )
    monkeypatch.setattr(sweep, "open_slurm", lambda root, words: queue)
    arguments = ["--preset", "smoke", "--setups", "MultiEnv", "--out", str(tmp_path / "study")]
    arguments += ["--tasks"]  # none
    paper.main([*arguments, "--cluster", "slurm", "--slurm", "partition=gpu", "mem=8G"])
    assert "submitted 5 jobs (1, 2, 3, 4, 5)" in capsys.readouterr().out
    assert (tmp_path / "study" / "study.json").exists()
    assert len({(module, *words) for module, words in submitted}) == 1
    module, words = submitted[0]
    assert module == "experiments.paper"
    paper.main([*words, "--plan"])  # what a job runs, here
    shown = capsys.readouterr().out
    assert "frames in all" in shown
    assert "#SBATCH" not in shown
    paper.main([*arguments, "--cluster", "slurm", "--slurm", "partition=gpu", "--plan"])
    assert "#SBATCH --partition=gpu" in capsys.readouterr().out.splitlines()
    paper.main([*arguments, "--cluster", "slurm", "--parallel", "2"])
    assert len(submitted) == 7
    tasks = [
        *arguments,
        "MultiRoom-N12-S10",
        "DoorKey-8x8",
        "--methods",
        "cbet",
        "--cluster",
        "slurm",
    ]
    paper.main([*tasks, "--stages", "transfer", "tabula_rasa"])
    assert len(submitted) == 7 + 4


def test_a_damaged_policy_is_refused(unbroken, small, tmp_path, capsys):
    (table,) = unbroken.glob("evaluation/DoorKey/cbet/80/Unlock.csv")
    (policy,) = unbroken.glob("pretrain/DoorKey/cbet/policies/*80.npz")
    kept, saved = table.read_bytes(), policy.read_bytes()
    try:
        table.unlink()
        policy.write_bytes(saved[:-10])
        error = refused(paper.main, [*ARGUMENTS, "--out", str(unbroken)], capsys)
        assert "000000000080.npz is damaged" in error
    finally:
        table.write_bytes(kept)
        policy.write_bytes(saved)
