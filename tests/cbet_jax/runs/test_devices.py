"""The devices of a run: which of them are used, and what is said where they do not fit."""

import os
import subprocess
import sys
from collections import Counter
from typing import NamedTuple

import jax
import pytest

from cbet_jax.config import TrainSettings
from cbet_jax.runs.devices import (
    compiled_quickly,
    fewest_sequences,
    fits,
    most,
    of_each_host,
    use_cpu,
)
from experiments import minigrid_pretrain
from experiments.common.presets import PRESETS
from tests.support.corridor_runs import ARGUMENTS
from tests.support.families import slow
from tests.support.refusal import refused

PAPER = TrainSettings()  # 40 worlds, batches of 32


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
        slow({"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}, "4"),
    ],
)
def test_every_core_is_a_device_unless_the_environment_says_otherwise(variables, found):
    program = "import cbet_jax.runs.devices as d, jax; d.use_cpu(); print(len(jax.devices()), %s)"
    environment = {**os.environ, "XLA_FLAGS": "", **variables}
    printed = subprocess.check_output(
        [sys.executable, "-c", program % found], env=environment, text=True
    )
    there, expected = printed.split()
    assert there == expected


@pytest.mark.parametrize(
    ("devices", "expected"),
    [("0", "devices must be at least 1"), ("3", "devices must be in 1..1 (there is 1), not 3")],
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


@pytest.mark.parametrize(
    ("flags", "expected"),
    [("", {"xla_backend_optimization_level": 1}), ("--xla_backend_optimization_level=0", {})],
)
def test_a_level_of_optimization_that_was_chosen_is_kept(flags, expected, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", flags)
    assert compiled_quickly() == expected
