"""Studies, with stand-ins for training and playing."""

import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from cbet_jax.config import SettingsError
from cbet_jax.runs import manifest, metrics_table
from cbet_jax.runs.directory import RunDirectory, checkpoints, frames_of, path_at
from experiments import noisy_tv, paper, report
from experiments.study import results
from experiments.study.plan import TABULA_RASA, TRANSFER
from experiments.sweeps import execute
from tests.support.damage import cut
from tests.support.here_queue import HereQueue
from tests.support.refusal import refused
from tests.support.small_study import ARGUMENTS, CHUNK_FRAMES, CHUNKS, FRAMES, stand_in, walking
from tests.support.unrendered import leave_unrendered, render

RUN = "pretrain/DoorKey/cbet"
TASK_RUNS = ("transfer/DoorKey-8x8/DoorKey-cbet", "tabula_rasa/DoorKey-8x8/cbet")


@pytest.fixture(scope="module")
def small():
    """Small runs, trained by the stand-in."""
    with pytest.MonkeyPatch.context() as patch:
        stand_in(patch)
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


@pytest.fixture
def copied(unbroken, tmp_path) -> Path:
    """A copy of that study, to be damaged."""
    return shutil.copytree(unbroken, tmp_path / "study")


def contents(root: Path) -> dict[str, bytes]:
    """Return the numbers of a study: metrics and tables."""
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*.csv"))}


def evaluated(root: Path) -> dict[str, set[str]]:
    """Return the frames after which each method was evaluated in DoorKey."""
    folder = root / "evaluation/DoorKey"
    return {path.name: {one.name for one in path.iterdir()} for path in folder.glob("*")}


def plan_of(words, capsys) -> list[str]:
    """Return the lines that `--plan` prints."""
    capsys.readouterr()
    paper.main([*words, "--plan"])
    return capsys.readouterr().out.splitlines()


def test_a_study_leaves_all_that_it_should(unbroken):
    kept = RunDirectory(unbroken / RUN).policies
    assert list(map(frames_of, checkpoints(kept))) == [2 * CHUNK_FRAMES, FRAMES]
    assert evaluated(unbroken) == {"cbet": {str(2 * CHUNK_FRAMES), str(FRAMES)}}
    assert {RunDirectory(unbroken / run).saved_frames() for run in (RUN, *TASK_RUNS)} == {FRAMES}
    text = (unbroken / "report.html").read_text()
    pictures = list((unbroken / "report-figures").iterdir())
    assert {path.stem for path in pictures} >= {"pretraining", "tasks"}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert text.count("data:image/png;base64,") == len(pictures)


def test_nothing_done_is_done_twice(unbroken, small, tmp_path, monkeypatch):
    """Nor in a study that is called by another name, as after a move."""
    before = {path: path.stat().st_mtime_ns for path in unbroken.rglob("*/*/*.csv")}
    monkeypatch.setattr(HereQueue, "submit", None)
    (tmp_path / "moved").symlink_to(unbroken)
    monkeypatch.chdir(tmp_path)
    for out in (str(unbroken), "moved"):
        paper.main([*ARGUMENTS, "--out", out])
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_killed_study_ends_with_the_same_numbers(unbroken, small, tmp_path):
    """After one chunk of transfer."""
    root = tmp_path / "study"
    program = [sys.executable, "-m", "tests.support.small_study", str(CHUNKS + 1)]
    ended = subprocess.run([*program, *ARGUMENTS, "--out", str(root)], check=False, timeout=300)
    assert ended.returncode == -signal.SIGKILL
    assert contents(root) != contents(unbroken)
    paper.main([*ARGUMENTS, "--out", str(root)])
    assert contents(root) == contents(unbroken)


@pytest.mark.slow
def test_runs_can_be_left_at_equal_frames_for_now(unbroken, small, tmp_path, capsys):
    root = tmp_path / "study"
    without = [word for word in ARGUMENTS if word not in ("--evaluate-at", "50")]
    paper.main([*without, "--out", str(root), "--until", "50"])
    assert "no tasks now: they are learnt after the end" in capsys.readouterr().out
    frames = RunDirectory(root / RUN).saved_frames()
    assert frames == 2 * CHUNK_FRAMES  # where the chunk ends that reaches 50
    assert evaluated(root) == {"cbet": {str(2 * CHUNK_FRAMES)}}
    assert not (root / "transfer").exists()
    for _ in range(2):
        lines = plan_of([*without, "--out", str(root), "--until", "50"], capsys)
        assert lines[-1].startswith("0 of 2 jobs left, 0 of ")
        paper.main([*without, "--out", str(root), "--tasks-until", "50"])
    assert {RunDirectory(root / run).saved_frames() for run in TASK_RUNS} == {2 * CHUNK_FRAMES}
    assert evaluated(root) == evaluated(unbroken)
    found = [row for row in results.read(root / "results.csv") if row.stage == TABULA_RASA]
    assert max(row.frames for row in found) == 2 * CHUNK_FRAMES
    paper.main([*without, "--out", str(root)])
    ours, wanted = contents(root), contents(unbroken)
    for name in wanted.keys() - {"results.csv"}:
        assert ours[name] == wanted[name], name


def test_a_run_that_has_saved_nothing_yet_does_not_stop_the_report(copied, unbroken):
    """As while it compiles, or when it was killed there."""
    run = RunDirectory(copied / "tabula_rasa/DoorKey-8x8/cbet")
    run.metrics.unlink()
    shutil.rmtree(run.checkpoints)
    run = RunDirectory(copied / "transfer/DoorKey-8x8/DoorKey-cbet")
    run.metrics.unlink()  # it begins with a checkpoint, to which pre-trained policies are copied
    newest, *others = reversed(checkpoints(run.checkpoints))
    newest.rename(path_at(run.checkpoints, 0))
    for old in others:
        shutil.rmtree(old)
    paper.main(["--out", str(copied), "--report-only"])
    found, wanted = (results.read(study / "results.csv") for study in (copied, unbroken))
    begun = ("DoorKey", "cbet", TRANSFER)
    assert found == [
        row
        for row in wanted
        if row.stage != TABULA_RASA and (row.setup, row.method, row.stage) != begun
    ]
    assert len(found) < len(wanted)


def test_results_of_which_no_files_are_left_are_kept(copied, capsys):
    before = (copied / "results.csv").read_bytes()
    paper.main(["--out", str(copied), "--report-only"])
    assert not list(copied.glob("results-*"))
    shutil.rmtree(copied / "tabula_rasa")
    capsys.readouterr()
    paper.main(["--out", str(copied), "--report-only"])
    assert "results-earlier.csv is the earlier results.csv" in capsys.readouterr().out
    assert (copied / "results-earlier.csv").read_bytes() == before
    left = {row.stage for row in results.read(copied / "results.csv")}
    assert TABULA_RASA not in left
    assert TRANSFER in left
    paper.main(["--out", str(copied), "--report-only"])
    assert [path.name for path in copied.glob("results-*")] == ["results-earlier.csv"]
    shutil.rmtree(copied / RUN)  # its evaluations stay
    paper.main(["--out", str(copied), "--report-only"])
    assert {row.stage for row in results.read(copied / "results.csv")} == {results.STUDY, TRANSFER}


def test_worlds_and_policies_can_be_added(copied, unbroken, small, capsys):
    """A table has only the new world; policies that are gone are told, and not waited for."""
    frames = str(2 * CHUNK_FRAMES)
    run = RunDirectory(copied / RUN)
    for saved in (*checkpoints(run.policies), *checkpoints(run.checkpoints)):
        if frames_of(saved) < FRAMES:
            shutil.rmtree(saved)
    words = [*ARGUMENTS, "--envs", "Unlock", "DoorKey-8x8", "--out", str(copied)]
    line = refused(paper.main, words, capsys, 1)
    assert f"evaluation/DoorKey/cbet/{frames}: left out: {run.root} holds no policies" in line
    folder = copied / f"evaluation/DoorKey/cbet/{FRAMES}"
    assert (folder / "evaluation.csv").read_bytes() == (
        unbroken / folder.relative_to(copied) / "evaluation.csv"
    ).read_bytes()
    assert "DoorKey-8x8" in (folder / "evaluation-2.csv").read_text()
    assert "Unlock" not in (folder / "evaluation-2.csv").read_text()


def test_stages_are_done_one_by_one(unbroken, small, tmp_path, capsys):
    root = tmp_path / "study"
    words = [*ARGUMENTS, "--out", str(root), "--stages"]
    for stage in ("evaluation", "transfer"):
        assert "holds no study" in refused(paper.main, [*words, stage], capsys)
    assert "--stages names nothing" in refused(paper.main, words, capsys)
    before_its_end = [*words, "transfer", "--until", "50"]
    assert "nothing is asked for" in refused(paper.main, before_its_end, capsys)
    assert not root.exists()
    paper.main([*words, "tabula_rasa"])
    assert {path.name for path in root.glob("*/")} == {"tabula_rasa", "report-figures", "jobs"}
    line = refused(paper.main, [*words, "transfer"], capsys, 1)
    assert f"cbet holds no policies after {FRAMES} frames" in line
    for stages in (["transfer", "pretrain"], ["evaluation"]):
        paper.main([*words, *stages])
    assert contents(root) == contents(unbroken)


def test_policies_are_all_that_tasks_need_of_a_run(copied, unbroken, small, capsys):
    """And those of which a run has none are left out, with the reason."""
    run = copied / RUN
    shutil.rmtree(run / "checkpoints")
    (run / "metrics.csv").unlink()
    shutil.rmtree(copied / "transfer")
    words = [*ARGUMENTS, "--methods", "rnd", "cbet", "--out", str(copied), "--stages", "transfer"]
    assert "pretrain/DoorKey/rnd holds no policies" in refused(paper.main, words, capsys, 1)
    assert contents(copied / "transfer") == contents(unbroken / "transfer") != {}
    (copied / "pretrain/DoorKey/rnd").mkdir()
    path = copied / "pretrain/DoorKey/rnd/manifest.json"
    manifest.Session(path, ()).record(path, diverged="the loss of update 5 is not a finite number")
    assert "pretrain/DoorKey/rnd has diverged" in refused(paper.main, words, capsys, 1)


def test_a_signal_saves_and_ends_the_study(unbroken, small, tmp_path, capsys, monkeypatch):
    append, root = metrics_table.Table.append, tmp_path / "study"

    def append_and_interrupt(*arguments):
        signal.raise_signal(signal.SIGTERM)
        return append(*arguments)

    monkeypatch.setattr(metrics_table.Table, "append", append_and_interrupt)
    with pytest.raises(SystemExit) as stop:
        paper.main([*ARGUMENTS, "--out", str(root)])
    assert stop.value.code == 128 + signal.SIGTERM
    assert "training is saved, and the same command continues" in capsys.readouterr().out
    line = plan_of([*ARGUMENTS, "--out", str(root)], capsys)[0]
    assert line.endswith(f"--out {root / RUN} --resume  # at {CHUNK_FRAMES} frames")


@pytest.mark.slow
def test_a_run_that_diverges_stops_only_what_needs_it(
    unbroken, small, tmp_path, capsys, monkeypatch
):
    """Its first two chunks are good, and the policies there are evaluated."""

    def diverging(settings, mesh=None):
        bad = settings.explore and settings.train.method == "cbet"
        return walking(settings, mesh, bad_update=5 if bad else -1)

    root = tmp_path / "study"
    monkeypatch.setattr("experiments.common.gridworlds.build", diverging)
    arguments = [*ARGUMENTS, "--methods", "cbet", "count", "--out", str(root)]
    for _ in range(2):  # it diverges again where it did
        line = refused(paper.main, arguments, capsys, 1)
        why = f"{RUN}: the loss of update 5 is not a finite number"
        assert line.startswith(f"error: 3 of 10 jobs have failed, first {why}")
        assert RunDirectory(root / RUN).saved_frames() == 2 * CHUNK_FRAMES
        assert RunDirectory(root / "pretrain/DoorKey/count").saved_frames() == FRAMES
        both = {str(2 * CHUNK_FRAMES), str(FRAMES)}
        assert evaluated(root) == {"cbet": {str(2 * CHUNK_FRAMES)}, "count": both}
        assert {path.name for path in root.glob("transfer/*/*")} == {"DoorKey-count"}
        assert {path.name for path in root.glob("tabula_rasa/*/*")} == {"cbet", "count"}
        text = (root / "report.html").read_text()
        assert "Diverged after 80 frames, and is reported until there: pretrain DoorKey" in text
        assert "<td>DoorKey</td><td>C-BET</td><td>diverged</td>" in text
    monkeypatch.setattr("experiments.common.gridworlds.build", walking)
    paper.main(arguments)  # with what does not diverge
    assert "iverged" not in (root / "report.html").read_text()
    ours = {name: numbers for name, numbers in contents(root).items() if "count" not in name}
    wanted = contents(unbroken)
    for name in ours.keys() - {"results.csv"}:
        assert ours[name] == wanted[name], name


def test_a_run_that_memory_has_no_room_for_stops_only_what_needs_it(
    small, tmp_path, capsys, monkeypatch
):
    def build(settings, mesh=None):
        if not settings.explore:
            return walking(settings, mesh)
        raise SettingsError("training keeps 21.0 GiB")

    root = tmp_path / "study"
    monkeypatch.setattr("experiments.common.gridworlds.build", build)
    line = refused(paper.main, [*ARGUMENTS, "--out", str(root)], capsys, 1)
    assert line.startswith(
        f"error: 4 of 5 jobs have failed, first {RUN}: training keeps 21.0 GiB\n"
    )
    assert not (root / RUN).exists()
    assert RunDirectory(root / TASK_RUNS[1]).saved_frames() == FRAMES


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
    assert "its columns are not stage,setup" in refused(report.main, broken, capsys, 3)
    assert "nowhere.csv cannot be read" in refused(report.main, ["nowhere.csv"], capsys, 3)
    nothing = ["--report-only", "--out", str(tmp_path / "new")]
    assert "new holds no study" in refused(paper.main, nothing, capsys)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--methods", "cbett"], "unknown method 'cbett'; did you mean cbet"),
        (["--methods", "cbet", "cbet"], "method 'cbet' is named twice"),
        (["--setups", "Multienv"], "did you mean MultiEnv"),
        (["--tasks", "Unlokc"], "Unlock"),
        (["--seeds", "0"], "seeds must be at least 1"),
        (["--budget", "39", "--evaluate-at", "20"], "less than a chunk (40)"),
        (
            ["--budget", "200", "--tasks", "Unlock"],
            "gives transfer/Unlock/DoorKey-cbet 20 frames, less than a chunk (40): choose --budget",
        ),
        (["--evaluate-at", "121"], "evaluate_at must be in 1..120, not 121"),
        (["--until", "121"], "until must be in 1..120, not 121"),
        (["--slurm", "partition=gpu"], "--cluster slurm"),
        (["--tasks", "Unlock", "MiniGrid-Unlock-v0"], "task 'Unlock' is named twice"),
        (["--envs", "Unlock", "Unlock"], "world 'Unlock' is named twice"),
        (["--plan", "--report-only"], "leave one out"),
        (["--success-frames", "9"], "--success-frames belongs to --until-success"),
    ],
)
def test_bad_studies_are_refused(arguments, expected, small, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert expected in refused(paper.main, [*ARGUMENTS, *arguments, "--out", "study"], capsys)
    assert not list(tmp_path.iterdir())


def test_tasks_do_not_pause_where_there_are_none(small, tmp_path, capsys):
    words = ["--preset", "smoke", "--tasks-until", "9", "--out", str(tmp_path / "study")]
    assert "--tasks-until belongs to --tasks" in refused(noisy_tv.main, words, capsys)


@pytest.mark.parametrize("more", [[], ["--plan"]])
def test_a_folder_of_something_else_is_no_study(more, small, tmp_path, capsys):
    (tmp_path / "file").touch()
    for out, said in ((tmp_path / "file", "is a file"), (tmp_path, "holds no study")):
        assert said in refused(paper.main, [*ARGUMENTS, *more, "--out", str(out)], capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_other_settings_than_a_study_began_with_are_refused(unbroken, small, tmp_path, capsys):
    """By the settings of the study, or by somebody else in its directory."""
    for changed, problem in (("--budget", "budget is 120"), ("--seeds", "seeds is 2")):
        other = [*ARGUMENTS, "--out", str(unbroken), changed, "200"]
        assert f"other settings: {problem}, not 200" in refused(paper.main, other, capsys)
    root = tmp_path / "study"
    run = RunDirectory(root / RUN)
    run.create(replace(RunDirectory(unbroken / RUN).settings(), first_seed=7))
    shutil.copy(unbroken / "study.json", root)
    error = refused(paper.main, [*ARGUMENTS, "--out", str(root)], capsys)
    assert f"{run.root} was started with other settings: first_seed is 7, not 0" in error
    assert not list(root.rglob("*.csv"))


def test_damaged_studies_are_refused(copied, small, tmp_path, capsys):
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("all my work")
    arguments = [*ARGUMENTS, "--out", str(other)]
    assert "not empty and holds no study" in refused(paper.main, arguments, capsys)
    (other / "study.json").write_text("{")
    assert "study.json cannot be read" in refused(paper.main, arguments, capsys, 3)
    run = RunDirectory(copied / RUN)
    config = run.config.read_text()
    for damaged in (config.replace('"discount": 0.99', '"discount": 0.9'), "{"):
        run.config.write_text(damaged)
        line = refused(paper.main, [*ARGUMENTS, "--out", str(copied)], capsys, 3)
        assert f"{run.config} cannot be read: " in line
    run.config.write_text(config)
    table = copied / f"evaluation/DoorKey/cbet/{FRAMES}/evaluation.csv"
    header, row, *_ = table.read_text().splitlines()
    table.write_text(f"{header}\n{row[: len(row) // 3]}\n")
    line = refused(paper.main, ["--out", str(copied), "--report-only"], capsys, 3)
    assert f"{table} cannot be read" in line
    cut(checkpoints(run.policies)[0])
    shutil.rmtree(copied / "evaluation")
    error = refused(paper.main, [*ARGUMENTS, "--out", str(copied)], capsys, 1)
    assert error.startswith("error: 1 of 5 jobs have failed, first evaluation/DoorKey/cbet/80: ")
    assert "is damaged" in error
    assert table.exists()


def test_processes_share_a_study_job_by_job(copied, unbroken, small, capsys, monkeypatch):
    """What another process trains is left to it, until it stops."""
    run = RunDirectory(copied / RUN)
    for path in (*checkpoints(run.checkpoints), *checkpoints(run.policies)):
        shutil.rmtree(path)
    for path in (run.manifest, run.metrics):  # or it would have lost its checkpoints
        path.unlink()
    shutil.rmtree(copied / "tabula_rasa")
    shutil.rmtree(copied / "evaluation")
    waited = []
    lock = run.lock()
    lock.__enter__()

    def wait(seconds):
        if seconds:
            waited.append(seconds)
            lock.__exit__(None, None, None)

    monkeypatch.setattr(execute, "time", SimpleNamespace(sleep=wait))
    paper.main([*ARGUMENTS, "--out", str(copied)])
    said = capsys.readouterr().out
    assert waited == [execute.WAIT_SECONDS]
    waiting = said.index(f"{RUN} is being done by another process")
    assert waiting < said.index("tabula_rasa/DoorKey-8x8/cbet is done") < said.index(f"{RUN} is d")
    assert (copied / "results.csv").read_bytes() == (unbroken / "results.csv").read_bytes()
