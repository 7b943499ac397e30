"""Real commands that are stopped or killed, and continued: each ends as an unbroken one."""

import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cbet_jax.runs.directory import RunDirectory, checkpoints

pytestmark = pytest.mark.slow

SECONDS = 300
SMOKE = ("--preset", "smoke", "--frames", "160000", "--no-film")


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", *map(str, words)]


def stopped(words: list[str], run: Path, number: int) -> tuple[int, str]:
    """Start a command, send it a signal once a run has saved; return its status and its words."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        end = time.monotonic() + SECONDS
        while not checkpoints(RunDirectory(run).checkpoints):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(number)
        text, _ = process.communicate(timeout=SECONDS)
    return process.returncode, text.decode()


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> bytes:
    """The metrics of a run that nothing stopped."""
    run = tmp_path_factory.mktemp("unbroken") / "run"
    subprocess.run(command("experiments.minigrid_pretrain", *SMOKE, "--out", run), check=True)
    return RunDirectory(run).metrics.read_bytes()


def test_a_run_stopped_by_ctrl_c_is_continued_by_the_line_it_prints(unbroken, tmp_path):
    run = tmp_path / "run"
    words = command("experiments.minigrid_pretrain", *SMOKE, "--out", run)
    status, text = stopped(words, run, signal.SIGINT)
    assert status == 128 + signal.SIGINT
    assert "Traceback" not in text
    (again,) = re.findall("continue with: (.*)", text)
    subprocess.run(shlex.split(again), check=True)
    assert RunDirectory(run).metrics.read_bytes() == unbroken


def test_a_killed_sweep_is_continued_by_the_same_line(unbroken, tmp_path):
    """All of its processes end with it, and no run is begun anew."""
    root = tmp_path / "sweep"
    grid = ("--grid", "method=cbet,count", "--together", "1")
    words = command("experiments.sweep", *grid, *SMOKE, "--out", root)
    first, second = (root / "runs" / f"method={name}" for name in ("cbet", "count"))
    status, _ = stopped(words, first, signal.SIGKILL)
    assert status == -signal.SIGKILL
    end = time.monotonic() + SECONDS
    while RunDirectory(first).is_locked():
        assert time.monotonic() < end
        time.sleep(0.1)
    began = RunDirectory(first).config.stat().st_mtime_ns
    subprocess.run(words, check=True)
    assert RunDirectory(first).config.stat().st_mtime_ns == began
    assert RunDirectory(first).metrics.read_bytes() == unbroken
    assert RunDirectory(second).saved_frames() == RunDirectory(first).saved_frames()
