"""Sweeps: the grid, its jobs on this machine, and the table of their ends."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
import submitit

from cbet_jax.runs.directory import RunDirectory
from experiments import minigrid_pretrain, sweep, sweeps
from experiments.common import opening
from experiments.common.screen import Screen
from experiments.sweeps import command, gpus, jobs, plan, results
from experiments.sweeps import process as process_of_job
from experiments.sweeps.execute import Sweep
from experiments.sweeps.plan import read_grid
from experiments.sweeps.process import Training
from tests.support.fake_program import fake_program
from tests.support.own_method import own_method
from tests.support.refusal import refused
from tests.support.tiny import ARGUMENTS, CHUNK_FRAMES, FRAMES, SEEDS
from tests.support.unrendered import leave_unrendered

FEW_FRAMES = str(6 * CHUNK_FRAMES)
SHORT = tuple(FEW_FRAMES if word == str(FRAMES) else word for word in ARGUMENTS)
LOCAL = ("--parallel", "3", *SHORT)


@pytest.fixture(autouse=True)
def _quiet_submitit(monkeypatch):
    monkeypatch.setenv("SUBMITIT_LOG_LEVEL", "NOCONFIG")  # or it takes pytest's handlers away


@pytest.fixture
def stand_in(monkeypatch):
    """Training that takes no time, here and in the jobs."""
    monkeypatch.setitem(plan.COMMANDS, "pretrain", "tests.support.small_sweep")
    monkeypatch.setattr(minigrid_pretrain, "build", fake_program)
    leave_unrendered(monkeypatch)


def leave_out_submitit(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    monkeypatch.delitem(sys.modules, "experiments.sweeps.slurm", raising=False)
    monkeypatch.delattr(sweeps, "slurm", raising=False)


def test_the_grid_has_a_run_for_each_combination(tmp_path):
    grid = read_grid(["method=cbet,count", "counts.shared=true,false", "envs=Unlock DoorKey-8x8"])
    jobs = plan.plan(tmp_path, "pretrain", grid, ["--preset", "smoke"])
    assert [str(job) for job in jobs] == [
        f"method={method},counts.shared={shared},envs=Unlock_DoorKey-8x8"
        for method in ("cbet", "count")
        for shared in ("true", "false")
    ]
    assert jobs[1].arguments == (
        *("--preset", "smoke", "--method", "cbet", "--counts.no-shared"),
        *("--envs", "Unlock", "DoorKey-8x8"),
    )
    plan.check(jobs)
    options, _ = opening.read(minigrid_pretrain.EXPERIMENT, jobs[1].words)
    assert not options.train.counts.shared
    assert options.envs == ("Unlock", "DoorKey-8x8")


OWN_METHOD = """
    from dataclasses import dataclass

    from cbet_jax.intrinsic.none import none
    from cbet_jax.intrinsic.types import Intrinsic


    @dataclass(frozen=True)
    class Own:
        power: float = 1.0
        slots: int = 8


    def make(settings, num_actions, own=Own()):
        return none(settings, num_actions)._replace(coefficient=own.power * own.slots)
"""


def test_settings_of_an_own_method_are_swept_over(stand_in, tmp_path, capsys):
    """All combinations of two, with a third one fixed; each run's settings hold its own."""
    with own_method(tmp_path, OWN_METHOD) as path:
        fixed = [*SHORT, "--own", "slots=4", "--method", f"{path}:make"]
        grid = read_grid(["own.power=0.5,2", "seeds=1,2"])
        jobs = plan.plan(tmp_path / "sweep", "pretrain", grid, fixed)
        assert jobs[0].arguments == (*SHORT, *OWN_WORDS, f"{path}:make", "--seeds", "1")
        plan.check(jobs)
        arguments = ["--out", str(tmp_path / "sweep"), "--plan", *SHORT, "--method", f"{path}:make"]
        command.main([*arguments, "--grid", "own.power=0.5,2", "own.slots=4,16"])
        shown = capsys.readouterr().out
        ends = [
            f"own.power={power},own.slots={slots}" for power in ("0.5", "2") for slots in (4, 16)
        ]
        assert [line.split()[-1] for line in shown.splitlines()[:-1]] == ends
        assert "4 of 4 runs left, in 4 programs" in shown
        for words, line in (
            (
                ["own.pover=1,2"],
                "own.pover=1: the method has no setting 'pover'; did you mean power",
            ),
            (["own.slots=1.5"], "own.slots=1.5: own setting slots takes a int, not '1.5'"),
        ):
            assert line in refused(command.main, [*arguments, "--grid", *words], capsys)
        twice = [*arguments, "--own", "power=1", "--grid", "own.power=1,2"]
        assert "--own names power twice" in refused(command.main, twice, capsys)


OWN_WORDS = ("--own", "power=0.5", "slots=4", "--method")


def test_every_training_command_can_be_swept_over(tmp_path):
    grid = read_grid(["method=cbet,count"])
    fixed = {"tabula_rasa": ["--env", "Unlock"], "habitat": ["--seeds", "2"]}
    for command_name in ("tabula_rasa", "habitat"):
        plan.check(plan.plan(tmp_path, command_name, grid, fixed[command_name]))


@pytest.fixture
def unbroken(stand_in, tmp_path) -> bytes:
    """The metrics of a run that nothing disturbs."""
    minigrid_pretrain.main([*SHORT, "--out", str(tmp_path / "unbroken")])
    return RunDirectory(tmp_path / "unbroken").metrics.read_bytes()


def test_what_is_lost_goes_on_and_ends_the_same(unbroken, tmp_path, capsys):
    root = tmp_path / "sweep"
    arguments = [*LOCAL, "--out", str(root), "--grid"]
    with pytest.raises(SystemExit) as failed:
        command.main([*arguments, "method=none,count,rnd"])
    shown, error = capsys.readouterr()
    assert failed.value.code == 1
    assert error == "error: 1 of 3 runs have failed, first method=rnd\n"
    assert "method=rnd has failed: rnd is refused here" in shown
    assert "method=count was interrupted" in shown
    assert "method=none was interrupted" not in shown

    for method, sessions in (("none", 1), ("count", 2)):
        run = RunDirectory(root / "runs" / f"method={method}")
        assert run.metrics.read_bytes() == unbroken
        assert len(json.loads(run.manifest.read_text())["sessions"]) == sessions
    with open(root / "results.csv") as file:
        rows = list(csv.DictReader(file))
    assert [(row["method"], row["seed"]) for row in rows] == [
        (method, str(seed)) for method in ("none", "count") for seed in range(SEEDS)
    ]
    assert {row["frames"] for row in rows} == {FEW_FRAMES}
    assert all(float(row["interactions"]) for row in rows)

    table = (root / "results.csv").read_bytes()
    capsys.readouterr()
    command.main([*arguments, "method=none,count"])
    assert "2 runs, 2 of them done" in capsys.readouterr().out
    assert (root / "results.csv").read_bytes() == table
    command.main([*arguments, "method=none,rnd", "--plan"])
    plan_shown = "done method=none to do method=rnd 1 of 2 runs left, in 1 programs"
    assert capsys.readouterr().out.split() == plan_shown.split()
    other = [*arguments, "method=none", "--unroll", "5"]
    assert "train.unroll is 10, not 5" in refused(command.main, other, capsys)
    other = ["--out", str(root), "--command", "transfer"]
    assert "is a sweep over pretrain, not transfer" in refused(command.main, other, capsys)


def test_a_run_that_is_to_be_longer_is_not_done(unbroken, tmp_path, capsys):
    def jobs_of(frames: str) -> list[plan.SweepJob]:
        grid = read_grid([f"frames={frames}"])
        (job,) = plan.plan(tmp_path, "pretrain", grid, ARGUMENTS)
        return list(plan.check([job._replace(root=tmp_path / "unbroken")]))

    (same,), (longer,) = jobs_of(FEW_FRAMES), jobs_of(str(7 * CHUNK_FRAMES))
    assert same.done
    assert not longer.done
    assert results.collect([longer]) == []
    minigrid_pretrain.main([*longer.words, "--resume"])
    assert longer.done
    assert {row.frames for row in results.collect([longer])} == {7 * CHUNK_FRAMES}


def test_a_job_that_a_cluster_preempts_goes_on_by_itself(unbroken, tmp_path):
    """Through submitit, whose jobs on this machine hear the signals of SLURM."""
    executor = submitit.LocalExecutor(tmp_path / "jobs", max_num_timeout=9)
    executor.update_parameters(timeout_min=9)
    (job,) = plan.plan(tmp_path, "pretrain", read_grid(["method=cbet"]), SHORT)
    answer = tmp_path / "answer.json"
    training = jobs.training_of(plan.SweepGroup((job,)), answer, None)
    handle = executor.submit(training)
    assert handle.result() == 0
    paths = handle.paths
    assert jobs.status_of(jobs.Submitted("", handle.done, answer, paths.stderr, paths.stdout)) == 0
    run = RunDirectory(job.root)
    assert run.metrics.read_bytes() == unbroken
    assert len(json.loads(run.manifest.read_text())["sessions"]) == 2


KILLED = """
import sys
from experiments.sweeps import plan
from experiments import minigrid_pretrain, sweep, sweeps
from tests.support.fake_program import fake_program
from tests.support.own_method import own_method
plan.COMMANDS["pretrain"] = "tests.support.small_sweep"
minigrid_pretrain.build = fake_program
sweep.main(sys.argv[1:])
"""


def test_a_job_ends_with_the_sweep_that_started_it(tmp_path):
    """Its process gets the signal at which a trainer saves. This one waits for it."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    words = ["import time; time.sleep(100)"]
    job = Training("", [(words, tmp_path / "config.json")], tmp_path / "answer.json", dead.pid)
    popen = subprocess.Popen
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", lambda program: popen([program[0], "-c", *program[3:]]))
        assert job() == -signal.SIGTERM
    assert json.loads(job.answer.read_text()) == {"status": -signal.SIGTERM}


@pytest.mark.slow  # both halves are tested by default
def test_a_killed_sweep_leaves_no_trainer_and_goes_on(stand_in, tmp_path, capsys):
    root = tmp_path / "sweep"
    arguments = [*LOCAL, "--out", str(root), "--grid", "method=ride"]  # which waits half-way
    run = RunDirectory(root / "runs" / "method=ride")
    with subprocess.Popen([sys.executable, "-c", KILLED, *arguments]) as process:
        deadline = time.monotonic() + 200
        while not run.checkpoints.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.kill()
    sweep.main(arguments)
    shown = capsys.readouterr().out
    assert "method=ride is done" in shown
    assert not run.is_locked()


def test_a_run_that_another_process_trains_is_waited_for(tmp_path, capsys):
    group = plan.SweepGroup(tuple(plan.plan(tmp_path, "pretrain", {}, [])))
    run = RunDirectory(group.jobs[0].root)
    run.root.mkdir(parents=True)
    queue = SimpleNamespace(cluster=jobs.LOCAL, under_way=lambda job: None)
    waiting = Sweep([group], queue, None, 1, Screen())
    with run.lock():
        assert waiting._next() is None
        assert waiting._next() is None
    assert capsys.readouterr().out.count("still being trained by another process") == 1
    assert waiting._next() == group
    assert waiting._next() is None


def test_a_job_tells_its_end_as_json(tmp_path, monkeypatch):
    """A pickle in the folder of jobs would be run."""
    monkeypatch.setattr("pickle.loads", None)
    paths = [tmp_path / name for name in ("answer.json", "err", "out")]
    submitted = jobs.Submitted("job", lambda: True, *paths)
    assert jobs.status_of(submitted) is None
    for content, status in (('{"status": 2}', 2), ("[]", None), ("\x80\x04", None), ("{}", None)):
        submitted.answer.write_text(content)
        assert jobs.status_of(submitted) == status
    training = Training("no.such.module", [((), tmp_path / "x")], submitted.answer, None)
    assert Training.from_json(json.loads(json.dumps(training.to_json())))() == 1
    assert jobs.status_of(submitted) == 1
    assert jobs.last_error(submitted) == f"see {tmp_path / 'err'}"
    submitted.errors.write_text("error: first\nTraceback\nerror: last\n")
    assert jobs.last_error(submitted) == "last"


def test_a_dead_process_is_known():
    process = subprocess.Popen([sys.executable, "-c", ""])
    while process_of_job.is_alive(process.pid):
        time.sleep(0.01)  # dead, though its parent has not asked
    process.wait()
    assert process_of_job.is_alive(os.getpid())


def test_runs_that_differ_in_numbers_are_trained_by_one_program(
    stand_in, tmp_path, capsys, monkeypatch
):
    """And nothing on this machine needs submitit."""
    leave_out_submitit(monkeypatch)
    root = tmp_path / "sweep"
    rates = "optimizer.learning-rate=1e-4,3e-4,1e-3"
    arguments = [*LOCAL, "--method", "count", "--out", str(root), "--grid", rates]
    command.main([*arguments, "counts.reset-probability=0,0.1", "--plan"])
    assert "6 of 6 runs left, in 2 programs" in capsys.readouterr().out
    command.main([*arguments, "--together", "2", "--plan"])
    assert "3 of 3 runs left, in 2 programs" in capsys.readouterr().out
    command.main(arguments)
    shown = capsys.readouterr().out
    group = "optimizer.learning-rate=1e-4 to optimizer.learning-rate=1e-3 (3 runs)"
    assert f"{group} begins" in shown
    assert f"{group} was interrupted" in shown  # killed by the stand-in
    assert f"{group} continues" in shown
    minigrid_pretrain.main([*SHORT, "--out", str(tmp_path / "unbroken")])
    unbroken = RunDirectory(tmp_path / "unbroken").metrics.read_bytes()
    for rate in ("1e-4", "3e-4", "1e-3"):
        run = RunDirectory(root / "runs" / f"optimizer.learning-rate={rate}")
        assert run.settings().train.optimizer.learning_rate == float(rate)
        assert run.metrics.read_bytes() == unbroken
        session = json.loads(run.manifest.read_text())["sessions"][-1]
        assert session["runs_together"] == 3
        assert f"--out {run.root}" in session["command"]
    with open(root / "results.csv") as file:
        assert len(list(csv.DictReader(file))) == 3 * SEEDS


def test_runs_that_differ_in_more_are_trained_by_programs_of_their_own(tmp_path):
    grid = read_grid(["frames=1000,2000", "loss.discount=0.9,0.99"])
    fixed = ("--preset", "smoke")
    checked = plan.check(plan.plan(tmp_path, "pretrain", grid, fixed))
    assert [len(group.jobs) for group in plan.groups(checked)] == [2, 2]
    checked = plan.check(plan.plan(tmp_path, "pretrain", grid, (*fixed, "--distributed")))
    assert [len(group.jobs) for group in plan.groups(checked)] == [1] * 4


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--grid", "method"], "setting=value,value"),
        (["--grid", "method=cbet,"], "setting=value,value"),
        (["--grid", "method=cbet", "method=count"], "names method twice"),
        (["--grid", "method=cbet,cbet"], "a value of method twice"),
        (["--grid", "method=cbet", "--grid", "seeds=1"], "--grid is given twice"),
        (["--grid", "method=cbet,cuont"], "method=cuont: unknown method"),
        (["--grid", "methd=cbet"], "--method"),
        (["--grid", "out=a,b"], "a sweep says --out itself"),
        (["--grid", "envs=Unlock,Unlokc"], "Unlock"),
        (["--resume"], "a sweep says --resume itself"),
        (["--command", "pretrian"], "pretrain, tabula_rasa, transfer, habitat"),
        (["--cluster", "slrum"], "slurm"),
        (["--slurm", "partition=gpu"], "--cluster slurm"),
        (["--cluster", "slurm", "--slurm", "gpu"], "NAME=VALUE"),
        (["--parallel", "0"], "parallel must be at least 1"),
        (["--frmes", "10"], "--frames"),
    ],
)
def test_bad_sweeps_are_refused(arguments, expected, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert expected in refused(command.main, arguments, capsys)
    assert not list(tmp_path.rglob("config.json"))


@pytest.mark.parametrize(
    ("named", "places", "seen"),
    [
        ("0,1,2,3", 4, ["0", "1", "2", "3"]),
        ("0,1,2,3", 3, ["0,3", "1", "2"]),
        ("3,5", 1, ["3,5"]),
        ("-1", 2, ["-1", "-1"]),
        ("", 2, ["", ""]),
        (None, 2, [None, None]),
    ],
)
def test_each_of_the_runs_at_once_has_gpus_of_its_own(named, places, seen, monkeypatch):
    monkeypatch.delenv(gpus.VARIABLE, raising=False)
    if named is not None:
        monkeypatch.setenv(gpus.VARIABLE, named)
    gpus.refuse_too_few(places)
    assert [gpus.of_place(place, places) for place in range(places)] == seen


def test_more_runs_at_once_than_gpus_are_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(gpus.VARIABLE, "0,1")
    error = refused(command.main, [*LOCAL, "--out", str(tmp_path / "sweep")], capsys)
    assert "parallel must be at most 2, not 3" in error
    assert not list(tmp_path.iterdir())


def test_other_things_are_left_alone(tmp_path, capsys):
    (tmp_path / "results.csv").write_text("all my work")
    error = refused(command.main, [*LOCAL, "--out", str(tmp_path)], capsys)
    assert "not empty and holds no sweep" in error
    assert [path.name for path in tmp_path.iterdir()] == ["results.csv"]


CLUSTER = ("--cluster", "slurm", "--slurm", "partition=gpu", "gpus_per_node=1")


def test_the_plan_says_what_a_cluster_is_asked_for(stand_in, tmp_path, capsys):
    arguments = [*SHORT, "--out", str(tmp_path / "sweep"), "--plan", *CLUSTER]
    command.main(arguments)
    shown = capsys.readouterr().out.splitlines()
    asked = [line for line in shown if line.startswith("#SBATCH")]
    for flag in ("--partition=gpu", "--gpus-per-node=1", "--time=1440", "--job-name=cbet"):
        assert f"#SBATCH {flag}" in asked
    assert not list(tmp_path.iterdir())
    assert "no parameter gpus" in refused(command.main, [*arguments, "gpus=1"], capsys)


def test_a_cluster_needs_submitit(stand_in, tmp_path, capsys, monkeypatch):
    leave_out_submitit(monkeypatch)
    arguments = [*LOCAL, "--out", str(tmp_path / "sweep"), *CLUSTER]
    assert "pip install 'cbet-jax[slurm]'" in refused(command.main, arguments, capsys)
