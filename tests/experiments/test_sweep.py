"""Sweeps: the grid, its jobs on this machine, and the table of their ends."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from cbet_jax.config import SettingsError
from cbet_jax.runs import manifest, metrics_table
from cbet_jax.runs.atomic_write import write_json
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.metrics_table import Column
from experiments import minigrid_pretrain, sweeps
from experiments.common import opening
from experiments.sweeps import command, execute, jobs, plans, queues, results
from experiments.sweeps.grid import LONGEST_NAME, plan, read_grid
from experiments.sweeps.jobs import Job, check
from experiments.sweeps.process import CommandLine, Work, is_alive
from tests.support.fake_program import fake_program
from tests.support.here_queue import HereQueue
from tests.support.own_method import own_method
from tests.support.refusal import refused
from tests.support.small_sweep import DISTURBED_CHUNK
from tests.support.tiny import ARGUMENTS, CHUNK_FRAMES, FRAMES, SEEDS
from tests.support.unrendered import leave_unrendered

FEW_FRAMES = str(6 * CHUNK_FRAMES)
SHORT = tuple(FEW_FRAMES if word == str(FRAMES) else word for word in ARGUMENTS)
LOCAL = ("--parallel", "3", *SHORT)


def without(option: str, words: tuple[str, ...] = SHORT) -> tuple[str, ...]:
    """Return the words without an option and its value."""
    at = words.index(option)
    return (*words[:at], *words[at + 2 :])


@pytest.fixture(autouse=True)
def _quiet_submitit(monkeypatch):
    monkeypatch.setenv("SUBMITIT_LOG_LEVEL", "NOCONFIG")  # or it takes pytest's handlers away


@pytest.fixture
def stand_in(monkeypatch):
    """Training that takes no time, here and in the jobs."""
    monkeypatch.setitem(jobs.COMMANDS, "pretrain", "tests.support.small_sweep")
    monkeypatch.setattr("experiments.common.gridworlds.build", fake_program)
    leave_unrendered(monkeypatch)


def leave_out_submitit(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    monkeypatch.delitem(sys.modules, "experiments.sweeps.slurm", raising=False)
    monkeypatch.delattr(sweeps, "slurm", raising=False)


def test_the_grid_has_a_run_for_each_combination(tmp_path):
    grid = read_grid(["method=cbet,count", "counts.shared=true,false", "envs=Unlock DoorKey-8x8"])
    planned = check(plan(tmp_path, "pretrain", grid, ["--preset", "smoke"]))
    assert [job.name for job in planned] == [
        f"method={method},counts.shared={shared},envs=Unlock_DoorKey-8x8"
        for method in ("cbet", "count")
        for shared in ("true", "false")
    ]
    assert planned[1].words == (
        *("--preset", "smoke", "--method", "cbet", "--counts.no-shared"),
        *("--envs", "Unlock", "DoorKey-8x8", "--no-film", "--out", str(planned[1].root)),
    )
    options, _ = opening.read(minigrid_pretrain.EXPERIMENT, planned[1].words)
    assert not options.train.counts.shared
    assert options.envs == ("Unlock", "DoorKey-8x8")
    long = read_grid([f"envs={' '.join(['MultiRoom-N4-S5'] * 16)}"])
    with pytest.raises(SettingsError, match="too long for a directory's name"):
        plan(tmp_path, "pretrain", long, [])
    name = "x" * LONGEST_NAME
    write_json(tmp_path / f"{name}.job", {})  # while it is written, its name is longer


def test_films_may_be_in_the_grid(tmp_path):
    planned = plan(tmp_path, "pretrain", read_grid(["film=true"]), ["--preset", "smoke"])
    assert [job.words[2] for job in planned] == ["--film"]
    assert not any("--no-film" in job.words for job in planned)


def test_all_worlds_weigh_the_same_at_the_end_of_a_run(tmp_path, monkeypatch):
    def column(*values):
        return Column(np.array([50, 100]), np.array(values), np.array([1.0, 3.0]))

    named = {"success/Unlock": (0.0, 0.0), "success/DoorKey-8x8": (1.0, 1.0), "loss": (5.0, 7.0)}
    table = {name: {0: column(*values)} for name, values in (named | {"success": (1, 0)}).items()}
    monkeypatch.setattr(metrics_table, "read_verified", lambda directory: table)
    (row,) = results._rows((), Job("run", "pretrain", tmp_path, ()))
    assert row.values == {"success": 0.5, "success/Unlock": 0, "success/DoorKey-8x8": 1, "loss": 7}


def test_no_two_columns_of_the_results_have_one_name(tmp_path):
    rows = [results.SweepRow((("frames", "800"),), 0, 960, {"success": 0.5})]
    results.write(tmp_path / "results.csv", rows)
    assert (tmp_path / "results.csv").read_text() == (
        "frames_asked,seed,frames,success\n800,0,960,0.5\n"
    )


OWN_METHOD = """
    from dataclasses import dataclass

    from cbet_jax.intrinsic.none import none
    from cbet_jax.intrinsic.interface import Intrinsic


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
        method = ("--method", f"{path}:make")
        grid = read_grid(["own.power=0.5,2", "seeds=1,2"])
        short = without("--seeds")
        fixed = [*short, "--own", "slots=4", *method]
        job, *_ = check(plan(tmp_path / "sweep", "pretrain", grid, fixed))
        own = ("--own", "power=0.5", "slots=4", *method, "--seeds", "1")
        assert job.words[: -len(("--out", "DIR"))] == (*short, *own)
        arguments = ["--out", str(tmp_path / "sweep"), "--plan", *SHORT, *method]
        command.main([*arguments, "--grid", "own.power=0.5,2", "own.slots=4,16"])
        *lines, last = capsys.readouterr().out.splitlines()
        assert lines[-1].endswith("own.power=2,own.slots=16  # to do")
        assert last.startswith("4 of 4 jobs left, ")
        unknown = [*arguments, "--grid", "own.pover=1,2"]
        problem = "own.pover=1: the method has no setting 'pover'; did you mean power"
        assert problem in refused(command.main, unknown, capsys)
        twice = [*arguments, "--own", "power=1", "--grid", "own.power=1,2"]
        assert "--own names power twice" in refused(command.main, twice, capsys)


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
    assert error == "error: 1 of 3 jobs have failed, first method=rnd: rnd is refused here\n"
    assert "method=rnd has failed: rnd is refused here" in shown
    assert "method=count continues" in shown
    assert "method=none continues" not in shown

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
    assert all(0 < float(row["entropy"]) < 2 for row in rows)

    table = (root / "results.csv").read_bytes()
    capsys.readouterr()
    command.main([*arguments, "method=none,count"])
    assert "0 of 2 jobs left, 0 of " in capsys.readouterr().out
    assert (root / "results.csv").read_bytes() == table
    command.main([*arguments, "method=none,rnd", "--plan"])
    done, to_do, last = capsys.readouterr().out.splitlines()
    assert done.endswith("--resume  # done")
    assert to_do.endswith("method=rnd  # to do")
    frames = int(FEW_FRAMES) * SEEDS
    assert last == f"1 of 2 jobs left, {frames:,} of {2 * frames:,} frames"
    other = [*arguments, "method=none", "--unroll", "5"]
    assert "train.unroll is 10, not 5" in refused(command.main, other, capsys)
    other = ["--out", str(root), "--command", "transfer"]
    assert "is a sweep over pretrain, not transfer" in refused(command.main, other, capsys)


def test_a_crash_is_no_divergence_and_is_tried_again(unbroken, tmp_path, capsys, monkeypatch):
    class Crashing(HereQueue):
        crashed = False

        def submit(self, jobs, place, places):
            if self.crashed:
                return super().submit(jobs, place, places)
            self.crashed = True
            answer, errors = tmp_path / "answer", tmp_path / "errors"
            answer.write_text('{"status": 1}')  # Python's, after a traceback
            errors.write_text("Traceback\nRuntimeError: INTERNAL\n")
            return queues.Submitted("crashed", lambda: True, answer, errors, None)

    monkeypatch.setitem(jobs.COMMANDS, "pretrain", "experiments.minigrid_pretrain")
    monkeypatch.setattr(command, "open_queue", lambda *_: Crashing(tmp_path))
    command.main([*SHORT, "--out", str(tmp_path / "sweep"), "--grid", "method=none"])
    shown = capsys.readouterr().out
    assert "method=none was interrupted" in shown
    assert "method=none is done" in shown
    run = RunDirectory(tmp_path / "sweep/runs/method=none")
    assert run.metrics.read_bytes() == unbroken


def test_the_line_of_a_finished_evaluation_can_be_pasted(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "evaluated_worlds", lambda _: {"Unlock", "DoorKey-8x8"})
    worlds = ("Unlock", "DoorKey-8x8")
    job = jobs.Evaluation("e", "m", tmp_path, ("RUN",), worlds=worlds)
    assert job.beginning == ("RUN", "--envs", *worlds)
    added = replace(job, worlds=(*worlds, "BlockedUnlockPickup"))
    assert added.beginning == ("RUN", "--envs", "BlockedUnlockPickup")


def test_a_run_that_is_to_be_longer_is_not_done(unbroken, tmp_path, capsys):
    def job_of(frames: str) -> jobs.Job:
        (job,) = plan(tmp_path, "pretrain", read_grid([f"frames={frames}"]), without("--frames"))
        root = tmp_path / "unbroken"
        return check([replace(job, root=root, words=(*job.words[:-1], str(root)))])[0]

    assert job_of(FEW_FRAMES).done
    longer = job_of(str(7 * CHUNK_FRAMES))
    assert not longer.done
    assert results.collect({(): longer}) == []
    minigrid_pretrain.main(longer.continuing)
    assert longer.done
    assert {row.frames for row in results.collect({(): longer})} == {7 * CHUNK_FRAMES}


def test_a_task_that_ended_early_is_done_by_the_rule_that_ended_it_only(tmp_path):
    grid = read_grid(["first-seed=1"])
    rules = [("--until-success", "0.5"), ("--until-success", "0.9"), ()]
    short = (*SHORT, "--env", "Unlock")
    plans_ = [plan(tmp_path, "tabula_rasa", grid, (*short, *rule)) for rule in rules]
    same, stricter, no_rule = (check(planned)[0] for planned in plans_)
    same.root.mkdir(parents=True)
    same.config.touch()
    path = RunDirectory(same.root).manifest
    ended = {"ended": "success 0.52 over the last 500,000 frames", "early_end": same.early_end}
    manifest.Session(path, ()).record(path, **ended)
    assert same.done
    assert not stricter.done
    assert not no_rule.done
    manifest.Session(path, ()).record(path, ended=ended["ended"])  # as earlier versions did
    assert no_rule.done


NEW_INTERPRETER = """
from pathlib import Path
from experiments.sweeps.grid import plan, read_grid
from experiments.sweeps.jobs import check
grid = read_grid(["method=cbet,count", "optimizer.learning-rate=1e-4,3e-4"])
one, like, other, last = check(plan(Path("sweep"), "pretrain", grid, ["--preset", "smoke"]))
assert one.alike == like.alike != other.alike == last.alike
"""


def test_runs_that_differ_in_more_than_numbers_are_never_one_program():
    """As a command finds it: nothing has trained in its process."""
    subprocess.run([sys.executable, "-c", NEW_INTERPRETER], check=True, timeout=120)


def test_a_run_that_shall_pause_is_done_there(tmp_path):
    (job,) = plan(tmp_path, "pretrain", read_grid(["first-seed=1"]), (*SHORT, "--until", "1"))
    assert check([job])[0].frames == CHUNK_FRAMES


@pytest.mark.parametrize("rule", [(), ("--until-success", "0.9"), ("--without-success", "1M")])
def test_tasks_that_may_end_early_wait_for_no_other(rule, tmp_path):
    grid = read_grid(["optimizer.learning-rate=1e-4,3e-4"])
    words = (*SHORT, "--env", "Unlock", *rule)
    one, other = check(plan(tmp_path, "tabula_rasa", grid, words))
    assert one.alike == other.alike
    assert (one.alike is None) == bool(rule)


@pytest.fixture
def cluster(monkeypatch):
    """A cluster of this machine, whose jobs are processes, and hear the signals of SLURM."""
    from experiments.sweeps import slurm

    class Alive:
        def __contains__(self, name: str) -> bool:
            return is_alive(int(name))

    def executor(folder, **options):
        made = make(folder, **options)
        with suppress(OSError):  # unlike SLURM's, it makes the folder at once
            folder.rmdir()
            folder.parent.rmdir()
        return made

    make = slurm.submitit.AutoExecutor
    monkeypatch.setattr(slurm.submitit, "AutoExecutor", executor)
    monkeypatch.setattr(slurm, "CLUSTER", "local")
    monkeypatch.setattr(slurm.SlurmQueue, "poll_seconds", 0.1)
    monkeypatch.setattr(slurm.SlurmQueue, "_ask", lambda _: Alive())
    return slurm


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Puts shell scripts where programs of SLURM are looked for."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def put(name: str, script: str) -> None:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)

    return put


@pytest.mark.slow
def test_a_job_that_a_cluster_preempts_goes_on_by_itself(unbroken, cluster, tmp_path, capsys):
    root = tmp_path / "sweep"
    command.main([*SHORT, "--out", str(root), "--grid", "method=cbet", *CLUSTER])
    assert "method=cbet is done" in capsys.readouterr().out
    run = RunDirectory(root / "runs" / "method=cbet")
    assert run.metrics.read_bytes() == unbroken
    first, _ = json.loads(run.manifest.read_text())["sessions"]
    assert first["frames"] == DISTURBED_CHUNK * CHUNK_FRAMES  # nothing is played again


@pytest.mark.parametrize(
    ("squeue", "is_over", "told"),
    [
        ("echo 16; echo 17", False, ""),  # it waits, once more perhaps, or runs
        ("echo 16", True, ""),
        ("echo 117", True, ""),
        ("", True, ""),
        ("echo 'error: no controller' >&2; exit 1", False, "error: no controller"),
        ("exit 1", False, "returned non-zero exit status 1"),
    ],
)
def test_squeue_says_which_jobs_are_over(
    squeue, is_over, told, program, tmp_path, capsys, monkeypatch
):
    """It is asked seldom; a job is not submitted again until it answers, which is told once."""
    from experiments.sweeps import slurm

    monkeypatch.setenv("SQUEUE_STATES", "RUNNING")  # would hide jobs that wait
    program("srun", "")
    (tmp_path / "jobs").mkdir()
    program("squeue", f"echo $SQUEUE_STATES >> {tmp_path}/asked; {squeue}")
    (job,) = plan(tmp_path, "pretrain", {}, [])
    queue = slurm.SlurmQueue(tmp_path / "jobs", {})
    assert queue.under_way(job) is None
    queue._executor = SimpleNamespace(submit=lambda work: SimpleNamespace(job_id="17"))
    submitted = queue.submit([job], 0, 1)
    found = queue.under_way(job)
    assert found is None if is_over else (found.name, found.answer) == ("17", submitted.answer)
    assert submitted.is_over() == is_over
    assert (tmp_path / "asked").read_text() == "\n"
    queue._asked_at -= slurm.SAME_SECONDS
    assert submitted.is_over() == is_over
    waiting = "waiting for squeue to say which jobs are over: "
    shown = capsys.readouterr().out
    assert told in shown
    assert shown.count("\n") == shown.count(waiting) == bool(told)


def test_a_job_ends_with_the_sweep_that_started_it(tmp_path):
    """Its process gets the signal at which a trainer saves. This one waits for it."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    line = CommandLine(["import time; time.sleep(100)"], [], "")
    work = Work("", [line], str(tmp_path / "answer.json"), dead.pid)
    popen = subprocess.Popen
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", lambda program: popen([program[0], "-c", *program[3:]]))
        assert work() == -signal.SIGTERM
    assert json.loads((tmp_path / "answer.json").read_text()) == {"status": -signal.SIGTERM}


def test_a_job_tells_its_end_as_json(tmp_path):
    paths = [tmp_path / name for name in ("answer.json", "err", "out")]
    submitted = queues.Submitted("job", lambda: True, *paths)
    assert queues.status_of(submitted) is None
    for content, status in (('{"status": 2}', 2), ("\x80\x04", None), ("{}", None)):
        submitted.answer.write_text(content)
        assert queues.status_of(submitted) == status
    work = Work("no.such.module", [CommandLine((), (), "x")], str(submitted.answer))
    assert Work.from_json(work.to_json())() == 1
    assert queues.status_of(submitted) == 1
    assert queues.last_error(submitted) == f"see {tmp_path / 'err'}"
    submitted.errors.write_text("error: first\nTraceback\nerror: last\n")
    assert queues.last_error(submitted) == "last"


@pytest.mark.slow
def test_runs_that_differ_in_numbers_are_trained_by_one_program(
    unbroken, tmp_path, capsys, monkeypatch
):
    """And nothing on this machine needs submitit."""
    leave_out_submitit(monkeypatch)
    root = tmp_path / "sweep"
    rates = "optimizer.learning-rate=1e-4,3e-4,1e-3"
    command.main([*LOCAL, "--method", "none", "--out", str(root), "--grid", rates])
    group = "optimizer.learning-rate=1e-4 to optimizer.learning-rate=1e-3 (3 jobs)"
    assert f"{group} begins" in capsys.readouterr().out
    for rate in ("1e-4", "3e-4", "1e-3"):
        run = RunDirectory(root / "runs" / f"optimizer.learning-rate={rate}")
        assert run.settings().train.optimizer.learning_rate == float(rate)
        assert run.metrics.read_bytes() == unbroken
        session = json.loads(run.manifest.read_text())["sessions"][-1]
        assert session["runs_together"] == 3
        assert f"--out {run.root}" in session["command"]
    with open(root / "results.csv") as file:
        assert len(list(csv.DictReader(file))) == 3 * SEEDS


def test_what_an_earlier_executor_left_in_the_queue_is_followed(tmp_path):
    """Also if it is like a job before it, which begins."""

    class Queue(HereQueue):
        followed = ()

        def submit(self, jobs, place, places):
            return under_way("18")

        def under_way(self, job):
            return under_way("17") if job.name == "b" else None

        def leave(self, submitted):
            self.followed = [each.name for each in submitted]

    def under_way(name):
        return queues.Submitted(name, lambda: False, tmp_path / name, tmp_path / name, None)

    planned = [jobs.Job(name, "", tmp_path / name, (), frames=1, alike=0) for name in "ab"]
    looks = iter([0, 0, signal.SIGTERM])
    stop = type("Stop", (), {"signal": property(lambda _: next(looks))})()
    queue, console = Queue(tmp_path), Console(file=io.StringIO())
    execute.Executor(planned, queue, tmp_path / "claims", console, parallel=2).run(stop)
    assert queue.followed == ["18", "17"]


def test_jobs_of_one_process_in_the_queue_are_followed_as_one(tmp_path):
    """If the process fails, each is tried alone."""

    class Queue(HereQueue):
        def under_way(self, job):
            place = tmp_path / "17"
            return queues.Submitted("17", lambda: False, place, place, None)

    planned = [jobs.Job(name, "", tmp_path / name, (), frames=1, alike=0) for name in "ab"]
    executor = execute.Executor(
        planned, Queue(tmp_path), tmp_path / "claims", Console(file=io.StringIO()), parallel=2
    )
    assert executor._begin_next()
    (running,) = executor._running
    assert [job.name for job in running.jobs] == ["a", "b"]
    running.claims.close()


def test_parameters_of_slurm_have_submitits_types():
    words = ["gpus_per_node=1", "use_srun=false", "setup=module load cuda", "srun_args=-A b"]
    assert plans._parameters(words) == {
        "gpus_per_node": 1,
        "use_srun": False,
        "setup": ["module load cuda"],
        "srun_args": ["-A", "b"],
    }


@pytest.mark.slow
def test_runs_that_differ_in_more_are_trained_by_programs_of_their_own(
    stand_in, tmp_path, monkeypatch
):
    grid = ["frames=80,160", "loss.discount=0.9,0.99"]
    more, short = [*grid, "counts.reset-probability=0,0.1"], without("--frames")
    arguments = [*short, "--method", "none", "--out", str(tmp_path / "sweep"), "--grid", *grid]
    planned = check(plan(tmp_path, "pretrain", read_grid(more), short))
    assert len({job.alike for job in planned}) == 4
    begun = []

    class Queue(HereQueue):
        def submit(self, jobs, place, places):
            begun.append(len(jobs))
            return super().submit(jobs, place, places)

    monkeypatch.setattr(plans, "LocalQueue", Queue)
    monkeypatch.setitem(jobs.COMMANDS, "pretrain", "experiments.minigrid_pretrain")
    monkeypatch.setattr(
        "experiments.common.gridworlds.build", lambda first, *_: fake_program(first)
    )
    command.main(arguments)
    assert begun == [2, 2]
    arguments[arguments.index(str(tmp_path / "sweep"))] = str(tmp_path / "alone")
    command.main([*arguments, "--together", "1"])
    assert begun[2:] == [1] * 4
    joint = check(plan(tmp_path, "pretrain", read_grid(grid), (*short, "--distributed")))
    assert {job.alike for job in joint} == {None}


def test_each_of_the_runs_at_once_has_gpus_and_cores_of_its_own(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv(queues.GPUS, raising=False)
    assert queues.gpus_of(0, 2) is queues.gpus_of(1, 2) is None
    for named, seen in (
        ("0,1,2,3", ["0", "1", "2", "3"]),
        ("0,1,2,3", ["0,3", "1", "2"]),
        *(("3,5", ["3,5"]), ("", ["", ""])),
    ):
        monkeypatch.setenv(queues.GPUS, named)
        queues.refuse_too_few_gpus(len(seen))
        assert [queues.gpus_of(place, len(seen)) for place in range(len(seen))] == seen
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 4, 6, 8})
    assert queues.cores_of(0, 1) == []
    assert [queues.cores_of(place, 2) for place in range(2)] == [[0, 2], [4, 6]]
    assert [queues.cores_of(place, 7) for place in (0, 6)] == [[0], [2]]
    monkeypatch.setenv(queues.GPUS, "0,1")
    error = refused(command.main, [*LOCAL, "--out", str(tmp_path / "sweep")], capsys)
    assert "parallel must be at most 2, not 3" in error
    assert not list(tmp_path.iterdir())


def test_other_things_are_left_alone(tmp_path, capsys):
    (tmp_path / "results.csv").write_text("all my work")
    error = refused(command.main, [*LOCAL, "--out", str(tmp_path)], capsys)
    assert "not empty and holds no sweep" in error
    assert [path.name for path in tmp_path.iterdir()] == ["results.csv"]


CLUSTER = ("--cluster", "slurm", "--slurm", "partition=gpu", "gpus_per_node=1")


def test_what_a_cluster_lacks_is_told(stand_in, cluster, tmp_path, capsys, monkeypatch):
    arguments = [*SHORT, "--out", str(tmp_path / "sweep"), *CLUSTER]
    monkeypatch.setattr(cluster, "CLUSTER", "slurm")
    monkeypatch.setenv("PATH", "")  # this machine may have a SLURM
    assert 'detect "srun"' in refused(command.main, arguments, capsys)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(cluster, "CLUSTER", "local")
    assert "Unknown argument 'gpus'" in refused(command.main, [*arguments, "gpus=1"], capsys)
    leave_out_submitit(monkeypatch)
    assert "pip install 'cbet-jax[slurm]'" in refused(command.main, arguments, capsys)


def test_what_sbatch_refuses_is_told_in_its_words(stand_in, program, tmp_path, capsys):
    program("srun", "")
    program(
        "sbatch", "printf 'sbatch: error: no nosuch\\nsbatch: error: Batch failed\\n' >&2; exit 1"
    )
    arguments = [*SHORT, "--out", str(tmp_path / "sweep"), "--cluster", "slurm"]
    error = refused(command.main, [*arguments, "--slurm", "partition=nosuch"], capsys)
    assert error == "error: sbatch: error: no nosuch; Batch failed\n"
