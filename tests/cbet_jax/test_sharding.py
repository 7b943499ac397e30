"""Runs on several devices and hosts: the same numbers as on one device."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from jax.sharding import Mesh

from cbet_jax import sharding
from cbet_jax.runs import multihost
from cbet_jax.runs.devices import COLLECTIVE_TIMEOUTS
from cbet_jax.runs.directory import RunDirectory
from tests.support.corridor_runs import ARGUMENTS, CHUNK_FRAMES, assert_same_run, last_state


@pytest.fixture(scope="module", autouse=True)
def partitioned():
    """Programs that are started here have JAX's partitioner, as all but tests have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_USE_SHARDY_PARTITIONER", "true")
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """The same run on one device, on four, resumed there, and moved to one."""
    root = tmp_path_factory.mktemp("runs")
    program = [sys.executable, "-m", "tests.support.corridor_runs", str(root)]
    with open(root / "stderr", "w") as stderr:
        subprocess.run(program, check=True, timeout=600, stderr=stderr)
    return root


@pytest.mark.parametrize("name", ["4", "moved"])
def test_the_numbers_do_not_depend_on_the_devices(name, runs):
    assert_same_run(runs / name, runs / "1")


@pytest.mark.slow
def test_runs_of_several_rates_share_devices(runs):
    program = [sys.executable, "-m", "tests.support.corridor_runs", str(runs), "company"]
    subprocess.run(program, check=True, timeout=600)
    assert_same_run(runs / "company", runs / "1")
    kernel = "learner.policy.params.value.kernel"
    one, other = (last_state(runs / name)[kernel] for name in ("company", "other"))
    assert (one != other).any()


def test_a_resumed_run_on_four_devices_ends_with_the_same_numbers_bit_for_bit(runs):
    one, other = (RunDirectory(runs / name) for name in ("died", "4"))
    assert one.metrics.read_bytes() == other.metrics.read_bytes()
    found, wanted = last_state(one.root), last_state(other.root)
    assert {name: x.tobytes() for name, x in found.items()} == {
        name: x.tobytes() for name, x in wanted.items()
    }


@pytest.mark.slow
def test_a_device_waits_for_another_as_long_as_it_takes():
    """XLA's own limit is 40 seconds, after which it ends the process."""
    program = [sys.executable, "-m", "tests.support.slow_device", "60"]
    subprocess.run(program, check=True, timeout=600, capture_output=True)


@pytest.mark.slow
def test_a_gridworld_on_two_devices_gives_the_numbers_of_one(tmp_path):
    """Never interrupted, with rounded factors: six iterations of 8 worlds x 10 steps."""
    program = [sys.executable, "-m", "experiments.minigrid_pretrain", *ARGUMENTS]
    program += ["--envs", "Unlock", "--network.factors", "bfloat16", "--seeds", "1"]
    program += ["--worlds", "8", "--batch", "8", "--unroll", "10"]
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "2"}
    for number in ("1", "2"):
        out = ["--out", str(tmp_path / number), "--devices", number]
        subprocess.run([*program, *out], env=environment, check=True, timeout=600)
    assert_same_run(tmp_path / "2", tmp_path / "1")


@pytest.mark.slow  # starts two more processes
def test_two_hosts_of_two_devices_make_one_run(runs, tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    variables = {multihost.ADDRESS: address, multihost.PROCESSES: "2", "JAX_NUM_CPU_DEVICES": "2"}
    program = [sys.executable, "-m", "tests.support.corridor_runs", str(tmp_path / "run")]
    ended = [
        subprocess.Popen(
            program,
            env={**os.environ, **variables, multihost.PROCESS: str(host)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for host in range(2)
    ]
    shown = [process.communicate(timeout=600) for process in ended]
    assert [process.returncode for process in ended] == [0, 0], shown
    assert_same_run(tmp_path / "run", runs / "1")
    (first, error), (second, other_error) = shown
    assert f"stopped and saved at {CHUNK_FRAMES} frames" in first
    own = [line for line in second.splitlines() if not line.startswith("[Gloo]")]
    assert own == ["stopping when this chunk is done; another Ctrl-C ends it"]  # it had the signal
    assert error.splitlines() == other_error.splitlines()
    assert "already holds a run" in error
    sessions = json.loads(RunDirectory(tmp_path / "run").manifest.read_text())["sessions"]
    assert [session["from_frames"] for session in sessions] == [0, CHUNK_FRAMES]
    assert [len(session["devices"]) for session in sessions] == [4, 4]
    assert all(flag in sessions[0]["xla_flags"] for flag in COLLECTIVE_TIMEOUTS)


def test_devices_that_do_not_divide_are_refused(runs):
    assert (runs / "stderr").read_text() == (
        "error: 3 devices do not divide 2 seeds of 16 worlds and batches of 16; these do: 1 2 4\n"
    )
    assert not (runs / "3").exists()


@pytest.mark.parametrize(("here", "shared"), [(1, True), (2, False)])
def test_cores_share_products_unless_each_is_a_device(here, shared, monkeypatch):
    """Whatever other hosts have."""
    monkeypatch.setattr(sharding, "cores", lambda: 2)
    mesh = Mock(Mesh, local_devices=[Mock(platform="cpu")] * here, size=4)
    asked = {} if shared else {"xla_cpu_multi_thread_eigen": False}
    assert sharding.compiler_options(mesh) == asked
