"""Runs on several devices and hosts, and how seeds and worlds are laid out over them."""

import json
import os
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from unittest.mock import Mock

import jax
import pytest
from jax.sharding import Mesh

from cbet_jax import sharding
from cbet_jax.config import TrainSettings
from cbet_jax.runs import checkpoint, multihost
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.sharding import WAITING, fewest_sequences, fits, most, of_each_host, use_cpu
from experiments import minigrid_pretrain
from experiments.common.presets import PRESETS
from tests.support.corridor_runs import ARGUMENTS, CHUNK_FRAMES, assert_same_run, last_state
from tests.support.refusal import refused

PAPER = TrainSettings()  # 40 worlds, batches of 32


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """The same run on one device, on four, interrupted there, and on two and then four."""
    root = tmp_path_factory.mktemp("runs")
    program = [sys.executable, "-m", "tests.support.corridor_runs", str(root)]
    with open(root / "stderr", "w") as stderr:
        subprocess.run(program, check=True, timeout=600, stderr=stderr)
    return root


@pytest.mark.parametrize("name", ["4", "moved"])
def test_the_numbers_do_not_depend_on_the_devices(name, runs):
    assert_same_run(runs / name, runs / "1")


def test_an_interrupted_run_on_four_devices_ends_with_the_same_numbers_bit_for_bit(runs):
    one, other = (RunDirectory(runs / name) for name in ("interrupted", "4"))
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
    newest = checkpoint.checkpoints(RunDirectory(tmp_path / "run").checkpoints)[-1]
    written = [folder.name for folder in (newest / checkpoint.STATE).glob("ocdbt.process_*")]
    assert sorted(written) == ["ocdbt.process_0", "ocdbt.process_1"]  # each host its part
    (first, error), (second, other_error) = shown
    assert f"stopped and saved at {CHUNK_FRAMES} frames" in first
    assert all(line.startswith("[Gloo]") for line in second.splitlines())  # speaks for itself
    assert error.splitlines() == other_error.splitlines()
    assert "already holds a run" in error
    sessions = json.loads(RunDirectory(tmp_path / "run").manifest.read_text())["sessions"]
    assert [session["from_frames"] for session in sessions] == [0, CHUNK_FRAMES]
    assert [len(session["devices"]) for session in sessions] == [4, 4]
    assert all(flag in sessions[0]["xla_flags"] for flag in WAITING)


class Place(NamedTuple):
    """A device, as far as the layout looks at it."""

    process_index: int
    platform: str


@pytest.mark.parametrize(
    ("preset", "seeds", "devices", "used"),
    [
        ("laptop", 1, [2, 2], [2, 2]),
        ("laptop", 1, [8, 8], [4, 4]),  # of whose batches of 32 each gets four sequences
        ("laptop", 3, [2, 2, 2], [2, 2, 2]),
        ("laptop", 3, [2, 1], [2, 1]),
        ("laptop", 1, [2, 2, 2], [1, 1, 1]),  # which does not fit, and is refused then
        ("paper", 1, [2, 2], [1, 1]),  # the cores of each host share its products
        ("paper", 4, [2, 2], [2, 2]),
    ],
)
def test_every_host_gives_devices(preset, seeds, devices, used):
    found = [Place(host, "cpu") for host, number in enumerate(devices) for _ in range(number)]
    given = of_each_host(found, PRESETS[preset].train, seeds)
    taken = Counter(place.process_index for place in given)
    assert [taken[host] for host in range(len(devices))] == used


@pytest.mark.parametrize(("here", "shared"), [(1, True), (2, False)])
def test_cores_share_products_unless_each_is_a_device(here, shared, monkeypatch):
    """Whatever other hosts have."""
    monkeypatch.setattr(devices, "cores", lambda: 2)
    mesh = Mock(Mesh, local_devices=[None] * here, size=4)
    asked = {} if shared else {"xla_cpu_multi_thread_eigen": False}
    assert sharding.compiler_options(mesh) == asked


@pytest.mark.parametrize(
    ("seeds", "devices", "used"),
    [(1, 8, 8), (7, 8, 7), (3, 8, 6), (8, 4, 4), (2, 3, 2), (1, 7, 4), (5, 16, 10), (1, 1, 1)],
)
def test_whole_seeds_come_first_then_worlds(seeds, devices, used):
    assert most(PAPER, seeds, devices) == used
    assert fits(PAPER, seeds, used)


@pytest.mark.parametrize(("cores", "used"), [(2, 2), (8, 8), (16, 8), (64, 8)])
def test_a_core_is_given_some_sequences_of_a_batch(cores, used):
    assert most(PAPER, 1, cores, fewest=4) == used


@pytest.mark.parametrize(
    ("preset", "seeds", "used"),
    [("laptop", 1, 2), ("laptop", 2, 2), ("paper", 1, 1), ("paper", 2, 2)],
)
def test_cores_share_a_small_networks_worlds_and_a_large_ones_operations(preset, seeds, used):
    settings = PRESETS[preset].train
    assert most(settings, seeds, 2, fewest_sequences(settings, "cpu")) == used
    assert most(settings, seeds, 2, fewest_sequences(settings, "gpu")) == 2


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({}, "d.cores()"),
        ({"JAX_NUM_CPU_DEVICES": "3"}, "3"),
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}, "4"),
    ],
)
def test_every_core_is_a_device_unless_the_environment_says_otherwise(variables, found):
    program = "import cbet_jax.sharding as d, jax; d.use_cpu(); print(len(jax.devices()), %s)"
    environment = {**os.environ, "XLA_FLAGS": "", **variables}
    printed = subprocess.check_output(
        [sys.executable, "-c", program % found], env=environment, text=True
    )
    there, expected = printed.split()
    assert there == expected


@pytest.mark.parametrize(
    ("devices", "expected"),
    [("0", "devices must be at least 1"), ("3", "devices must lie in 1..1 (there is 1), not 3")],
)
def test_devices_that_are_not_there_are_refused(devices, expected, tmp_path, capsys):
    use_cpu(1)  # where no test has used a device yet; afterwards nothing changes their number
    jax.devices()
    arguments = [*ARGUMENTS, "--out", str(tmp_path), "--devices", devices]
    assert expected in refused(minigrid_pretrain.main, arguments, capsys)
    assert not list(tmp_path.iterdir())


def test_devices_belong_to_one_host(tmp_path, capsys):
    arguments = [*ARGUMENTS, "--out", str(tmp_path), "--devices", "2", "--distributed"]
    assert "leave --devices out" in refused(minigrid_pretrain.main, arguments, capsys)


def test_devices_that_do_not_divide_are_refused(runs):
    assert (runs / "stderr").read_text() == (
        "error: 3 devices do not divide 2 seeds of 16 worlds and batches of 16; these do: 1 2 4\n"
    )
    assert not (runs / "3").exists()
