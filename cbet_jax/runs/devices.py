"""Choose the devices of a run."""

import contextlib
import math
import os
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from cbet_jax.config import SettingsError, TrainSettings
from cbet_jax.sharding import SEEDS, WORLDS, cores

COLLECTIVE_TIMEOUTS = (  # flags of XLA, in seconds
    "xla_cpu_collective_call_warn_stuck_timeout_seconds",
    "xla_cpu_collective_call_terminate_timeout_seconds",
)
PATIENCE_SECONDS = 30 * 24 * 3600
#: LSTM units from which a CPU's cores share a network's products at less cost than its worlds
LARGE_LSTM_UNITS = 512
FEWEST_SEQUENCES_PER_CORE = 4  # products of fewer sequences of a batch are too small


def use_cpu(devices: int | None = None) -> None:
    """Split the CPU into devices (None: one for each core, unless the environment sets a number).

    Call it before any device is used. A core that is a device computes whole seeds or worlds; cores
    that share the operations of a small network mostly wait for each other.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    # XLA would end the process when a device waits for another longer than 40 seconds, as on a
    # busy or sleeping machine. Before 0.8 it ended the process when it met these flags.
    known = COLLECTIVE_TIMEOUTS if jax.__version_info__ >= (0, 8) else ()
    missing = (flag for flag in known if flag not in flags)
    patience = (f"--{flag}={PATIENCE_SECONDS}" for flag in missing)
    os.environ["XLA_FLAGS"] = " ".join([*flags.split(), *patience])
    is_set = "host_platform_device_count" in flags or jax.config.jax_num_cpu_devices >= 0
    if devices is None and is_set:
        return
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", devices or cores())


def compiled_quickly() -> dict[str, int]:
    """Return XLA's options for a program that runs once: compile fast, unless `XLA_FLAGS` says how.

    Its numbers stay the same to the last bit; at level 0 sums of products would be rounded
    differently.
    """
    option = "xla_backend_optimization_level"
    chosen = option in os.environ.get("XLA_FLAGS", "")
    return {option: 1} if jax.default_backend() == "cpu" and not chosen else {}


def make_mesh(settings: TrainSettings, seeds: int, devices: int | None = None) -> Mesh | None:
    """Return the devices of a run, `[SEEDS, WORLDS]`; None for a single device.

    Without a number, or with several hosts, it has as many devices as possible.

    Raises:
        SettingsError: there are fewer devices, or they do not divide seeds and worlds.
    """
    found = jax.devices()
    if jax.process_count() > 1:
        found = of_each_host(found, settings, seeds)
        devices = len(found)
    elif devices is None:
        devices = most(settings, seeds, len(found), fewest_sequences(settings, found[0].platform))
    if not 0 < devices <= len(found):
        there = f"there {'is 1' if len(found) == 1 else f'are {len(found)}'}"
        raise SettingsError(f"devices must be in 1..{len(found)} ({there}), not {devices}")
    if not fits(settings, seeds, devices):
        fitting = [n for n in range(1, len(found) + 1) if fits(settings, seeds, n)]
        raise SettingsError(
            f"{devices} devices do not divide {seeds} seeds of {settings.worlds} worlds and "
            f"batches of {settings.batch}; these do: {' '.join(map(str, fitting))}"
        )
    if devices == 1:
        return None
    return Mesh(np.array(found[:devices]).reshape(math.gcd(seeds, devices), -1), (SEEDS, WORLDS))


def of_each_host(found: Iterable[Any], settings: TrainSettings, seeds: int) -> list[Any]:
    """Return the devices (`jax.Device`) that several hosts use, equally many of each.

    Each host gives at least one, even if seeds and worlds do not divide by them.
    """
    by_host: dict[int, list[Any]] = {}
    for device in found:
        by_host.setdefault(device.process_index, []).append(device)
    numbers = range(1, max(map(len, by_host.values())) + 1)
    choices = [[d for host in by_host.values() for d in host[:number]] for number in numbers]
    fewest = fewest_sequences(settings, choices[0][0].platform)
    fitting = [choice for choice in choices if fits(settings, seeds, len(choice), fewest)]
    return fitting[-1] if fitting else choices[0]


def fewest_sequences(settings: TrainSettings, platform: str) -> int:
    """Return how many sequences of a batch a device must get where devices share a seed.

    On a CPU one device gets the whole batch of a large network: its cores share each operation.
    """
    if platform != "cpu":
        return 1
    large = settings.network.lstm_units >= LARGE_LSTM_UNITS
    return settings.batch if large else FEWEST_SEQUENCES_PER_CORE


def most(settings: TrainSettings, seeds: int, devices: int, fewest: int = 1) -> int:
    """Return how many of the devices a run uses: first for whole seeds, then for worlds of a seed.

    Where devices share a seed, each must get at least the `fewest` sequences of a batch.
    """
    rows = max(n for n in range(1, devices + 1) if seeds % n == 0)
    shared = [n for n in range(1, devices // rows + 1) if math.gcd(seeds, n * rows) == rows]
    return max(n * rows for n in shared if fits(settings, seeds, n * rows, fewest))


def fits(settings: TrainSettings, seeds: int, devices: int, fewest: int = 1) -> bool:
    """Return whether devices get whole seeds, or equal shares of at least `fewest` sequences."""
    in_a_row = devices // math.gcd(seeds, devices)
    divide = settings.worlds % in_a_row == 0 and settings.batch % in_a_row == 0
    return divide and (in_a_row == 1 or settings.batch // in_a_row >= fewest)
