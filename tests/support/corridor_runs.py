"""Runs in a corridor, which compile at once, on any number of devices.

As a program it makes the runs that the test of devices compares, in the directory it is given;
or, with the variables of `cbet_jax.runs.multihost` set, its part of one run.
"""

import os
import shutil
import signal
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import envs
from cbet_jax.analysis import figures
from cbet_jax.runs import checkpoint, metrics_table, multihost, progress_bar
from cbet_jax.runs.directory import RunDirectory, checkpoints, frames_of
from experiments import minigrid_pretrain
from experiments.common import gridworlds
from experiments.common.commands import AND
from tests.support import tiny
from tests.support.tiny import CHUNK
from tests.support.worlds import corridor

CHUNKS, WORLDS, STEPS = 3, 16, 5  # the devices share the worlds
CHUNK_FRAMES = CHUNK * WORLDS * STEPS
ARGUMENTS = (
    *tiny.ARGUMENTS,
    *("--frames", str(CHUNKS * CHUNK_FRAMES), "--checkpoint-seconds", "600"),
    *("--worlds", str(WORLDS), "--batch", str(WORLDS), "--unroll", str(STEPS)),
)


def play_in_corridors() -> None:
    """Give every run of this process a corridor for a world, and no pictures."""

    def make_corridor(names: Any, num_worlds: int, **_: Any) -> Any:
        return corridor(num_worlds)

    envs.make_world = make_corridor
    gridworlds.build = cache(gridworlds.build)  # traced once for all of its sessions
    figures.draw_learning_curves = lambda *_: []


def signal_at(chunk: int, number: int) -> Any:
    """Send this process a signal while it shows a chunk's metrics; return the undoing."""
    update, shown = progress_bar.Display.update, []

    def update_and_signal(*arguments: Any) -> None:
        shown.append(1)
        if len(shown) == chunk:
            signal.raise_signal(number)
        update(*arguments)

    progress_bar.Display.update = update_and_signal  # type: ignore[method-assign]
    return lambda: setattr(progress_bar.Display, "update", update)


def pretrain(root: Path, *arguments: str) -> int:
    """Run the command and return its exit status."""
    try:
        minigrid_pretrain.main([*ARGUMENTS, "--out", str(root), *arguments])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def last_state(root: Path) -> dict[str, np.ndarray]:
    """Return every array of a run's newest checkpoint by its name."""
    newest = checkpoints(RunDirectory(root).checkpoints)[-1]
    assert frames_of(newest) == CHUNKS * CHUNK_FRAMES
    return checkpoint.read_arrays(newest)[0]


def assert_same_run(one: Path, other: Path) -> None:
    """Check that two runs ended with the same numbers, up to the order of sums.

    The first may have fewer seeds than the other.
    """
    state, wanted = last_state(one), last_state(other)
    assert state.keys() == wanted.keys()
    for name, found in state.items():
        numbers = wanted[name][: len(found)]
        exact = np.issubdtype(numbers.dtype, np.integer)
        np.testing.assert_allclose(
            found, numbers, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-6, err_msg=name
        )
    table, wanted_table = (metrics_table.read(RunDirectory(root).metrics) for root in (one, other))
    assert table.keys() == wanted_table.keys()
    for name, seeds in table.items():
        for seed, column in seeds.items():
            wanted_column = wanted_table[name][seed]
            np.testing.assert_array_equal(column.frames, wanted_column.frames)
            np.testing.assert_allclose(column.values, wanted_column.values, rtol=1e-4, atol=1e-5)


def make_runs(root: Path) -> None:
    """Make a run on one device, two on four, and one that moves from four to one.

    One of those on four died after its first chunk, and goes on; a copy of it goes on on one.
    """
    for devices in ("4", "1"):  # the first gives the CPU its devices
        often = ("--checkpoint-seconds", "0")
        assert pretrain(root / devices, "--devices", devices, *often) == 0
    assert pretrain(root / "3", "--devices", "3") == 2
    for name, devices in (("died", "4"), ("moved", "1")):
        shutil.copytree(root / "4", root / name)
        for path in checkpoints(RunDirectory(root / name).checkpoints):
            if frames_of(path) > CHUNK_FRAMES:
                shutil.rmtree(path)
        assert pretrain(root / name, "--devices", devices, "--resume") == 0


def make_company(root: Path) -> None:
    """Make a run on four devices in company, which learns with another rate."""
    other = [*ARGUMENTS, "--out", str(root / "other"), "--optimizer.learning-rate", "2e-3"]
    assert pretrain(root / "company", "--devices", "4", AND, *other, "--devices", "4") == 0


def share_run(root: Path, host: int) -> None:
    """Make a run of one seed with another host: the second is told to stop, and both go on."""
    together = ("--seeds", "1", "--distributed")
    undo = signal_at(1, signal.SIGTERM) if host else lambda: None
    assert pretrain(root, *together) == 128 + signal.SIGTERM
    undo()
    assert pretrain(root, *together) == 2
    assert pretrain(root, *together, "--resume") == 0


if __name__ == "__main__":
    play_in_corridors()
    if "company" in sys.argv:
        make_company(Path(sys.argv[1]))
    elif multihost.PROCESS in os.environ:
        share_run(Path(sys.argv[1]), int(os.environ[multihost.PROCESS]))
    else:
        make_runs(Path(sys.argv[1]))
