"""Sweeps and studies on a real SLURM, where it is installed."""

import json

import pytest

from cbet_jax.runs.directory import RunDirectory
from experiments import minigrid_pretrain, paper
from experiments.study import plan
from experiments.sweeps import command, jobs
from tests.support import small_study
from tests.support.fake_program import fake_program
from tests.support.real_slurm import HAS_DATABASE, IS_INSTALLED, answer, real_slurm
from tests.support.refusal import refused
from tests.support.small_sweep import DISTURBED_CHUNK
from tests.support.tiny import ARGUMENTS, CHUNK_FRAMES
from tests.support.unrendered import leave_unrendered

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_INSTALLED, reason="slurm-wlm or munge is not installed"),
]
SLURM = ("--cluster", "slurm", "--slurm", "partition=low")
JOB = "tests.support.slurm_job"
CHUNKS = 6
SHORT = (*ARGUMENTS, "--frames", str(CHUNKS * CHUNK_FRAMES))


@pytest.fixture(scope="module", params=["", "accounts"], autouse=True)
def cluster(request):
    if request.param and not HAS_DATABASE:
        pytest.skip("slurmdbd or mariadb-server is not installed")
    with real_slurm(accounts=bool(request.param)):
        yield request.param


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    """Stand-ins for training, here and in the jobs."""
    monkeypatch.setenv("SUBMITIT_LOG_LEVEL", "NOCONFIG")  # or it takes pytest's handlers away
    leave_unrendered(monkeypatch)
    monkeypatch.setitem(jobs.COMMANDS, "pretrain", JOB)


def test_what_a_cluster_does_to_jobs_changes_no_number(cluster, tmp_path, capfd, monkeypatch):
    """One is cancelled, and submitted again; the cluster itself does that to three others."""
    monkeypatch.setattr("experiments.common.gridworlds.build", fake_program)
    minigrid_pretrain.main([*SHORT, "--out", str(tmp_path / "unbroken")])
    unbroken = RunDirectory(tmp_path / "unbroken").metrics.read_bytes()
    root = tmp_path / "sweep"
    grid = ("--grid", "method=none,cbet,count,ride,curiosity,rnd")
    capfd.readouterr()
    with pytest.raises(SystemExit) as failed:
        command.main([*SHORT, "--out", str(root), *SLURM, *grid])
    shown, error = capfd.readouterr()
    assert failed.value.code == 1
    assert error == "error: 1 of 6 jobs have failed, first method=rnd: rnd is refused here\n"
    for method in ("none", "cbet", "count", "ride", "curiosity"):
        run = RunDirectory(root / "runs" / f"method={method}")
        assert run.metrics.read_bytes() == unbroken
        sessions = json.loads(run.manifest.read_text())["sessions"]
        stops = [] if method == "none" else [DISTURBED_CHUNK]  # all that was played is saved
        assert [s["frames"] for s in sessions] == [n * CHUNK_FRAMES for n in (*stops, CHUNKS)]
        assert (f"method={method} was interrupted" in shown) == (method == "cbet")
    words = ("sacct", "--allocations", "--duplicates", "--noheader", "--parsable2")
    states = {*answer(*words, "--format=state").split()}
    assert {"CANCELLED", "REQUEUED", "PREEMPTED"} <= states if cluster else not states


def test_a_partition_that_is_not_there_is_told_in_a_line(tmp_path, capsys):
    arguments = [*SHORT, "--out", str(tmp_path), "--cluster", "slurm"]
    error = refused(command.main, [*arguments, "--slurm", "partition=nosuch"], capsys)
    assert error == (
        "error: sbatch: error: invalid partition specified: nosuch; Batch job submission failed: "
        "Invalid partition name specified\n"
    )
    command.main([*arguments, "--slurm", "partition=low"])
    assert "1 of 1 jobs left" in capsys.readouterr().out


def test_a_study_has_the_same_numbers_on_a_cluster(tmp_path, monkeypatch):
    """Its second stage plays the policies of its first."""
    small_study.stand_in(monkeypatch)
    monkeypatch.setattr(plan, "EVALUATE", JOB)
    study = [*small_study.ARGUMENTS, "--stages", "pretrain", "evaluation"]
    tables = []
    for root, where in ((tmp_path / "slurm", SLURM), (tmp_path / "here", ())):
        paper.main([*study, "--out", str(root), *where])
        tables.append({p.relative_to(root): p.read_bytes() for p in root.rglob("*.csv")})
    assert tables[0] == tables[1]
    assert len(tables[0]) == 4  # metrics, evaluations after 80 and 120 frames, all results
