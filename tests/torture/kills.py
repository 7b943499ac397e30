"""Kills: what was saved stays, the same command continues, and the numbers are the same."""

import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orbax.checkpoint as ocp

from cbet_jax.runs import checkpoint, manifest, metrics_table
from cbet_jax.runs.directory import RunDirectory
from experiments.evaluation import evaluation_table
from experiments.sweeps import execute
from experiments.sweeps import results as sweep_results
from tests.torture import runs
from tests.torture.trial import Trial, trouble

GROUP = "kills"
KILLED = -signal.SIGKILL

# Where a training run is killed: a function, and at which of its calls.
TRAINING: tuple[tuple[Any, str, tuple[int, ...]], ...] = (
    (os, "replace", (1, 2, 3, 5, 8, 13)),
    (os, "rename", (1, 2, 4, 5)),
    (os, "link", (1,)),
    (os, "fsync", (1, 2, 5)),
    (shutil, "rmtree", (1, 2)),
    (metrics_table.Table, "append", (1, 2, 3, 5)),
    (metrics_table.Table, "sync", (1, 3, 5)),
    (ocp.Checkpointer, "save", (1, 3, 5)),
    (checkpoint, "_digests", (1, 2, 4)),
    (checkpoint, "_copy", (1, 4)),
    (manifest.Session, "record", (1, 2, 4)),
)
DRAWING = (1, 2)  # figures, at their n-th picture
EVALUATING: tuple[tuple[Any, str, tuple[int, ...]], ...] = (
    (os, "link", (1,)),
    (os, "replace", (1,)),
    (evaluation_table, "save", (1,)),
    (evaluation_table, "_draw", (1,)),
)
STUDYING: tuple[tuple[Any, str, tuple[int, ...]], ...] = (
    (os, "replace", (1, 3, 6, 9, 12)),
    (metrics_table.Table, "append", (1, 3)),
    (evaluation_table, "save", (1,)),
)
SWEEPING: tuple[tuple[Any, str], ...] = (  # each at its first call
    (execute.Sweep, "_submit"),
    (execute.Sweep, "_end"),
    (sweep_results, "write"),
)
MOMENTS = 10  # kills by the clock, wherever the run then is


def trials(whole: Path, study: Path) -> Iterator[Trial]:
    """Yield trials of kills.

    Args:
        whole: a finished run, which all others must equal.
        study: a finished study, whose results all others must equal.
    """
    for owner, name, calls in TRAINING:
        for call in calls:
            arm = partial(runs.die_at, owner, name, call)
            yield _training(f"{name} {call}", whole, arm)
    for call in DRAWING:
        yield _training(f"picture {call}", whole, partial(_die_drawing, call))
    draw = random.Random(1)
    for _ in range(MOMENTS):
        seconds = draw.uniform(0.2, 6)
        yield _training(f"{seconds:.2f} s", whole, partial(_die_after, seconds))
    for owner, name, calls in EVALUATING:
        for call in calls:
            yield _evaluation(f"{name} {call}", whole, owner, name, call)
    for owner, name in SWEEPING:
        yield Trial(GROUP, f"sweep, at {name}", _sweep(owner, name))
    for owner, name, calls in STUDYING:
        for call in calls:
            yield _study(f"{name} {call}", study, owner, name, call)


def _die_drawing(call: int) -> None:
    from matplotlib.figure import Figure

    runs.die_at(Figure, "savefig", call)


def _die_after(seconds: float) -> None:
    def kill() -> None:
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()


def _training(where: str, whole: Path, arm: Callable[[], Any]) -> Trial:
    def work(folder: Path) -> str:
        root = folder / "run"
        ended = runs.pretrain(root, before=arm)
        if ended.status not in (KILLED, 0):
            return f"not killed: {trouble(ended)}"
        is_begun = RunDirectory(root).config.exists()
        ended = runs.resume(root) if is_begun else runs.pretrain(root)
        return trouble(ended, (0,)) or runs.differs(root, whole) or runs.left_over(root)

    return Trial(GROUP, f"training, at {where}", work)


def _evaluation(where: str, whole: Path, owner: Any, name: str, call: int) -> Trial:
    def work(folder: Path) -> str:
        directory = runs.copy(whole, folder / "run")
        ended = runs.evaluate(directory.root, before=lambda: runs.die_at(owner, name, call))
        if ended.status not in (KILLED, 0):
            return f"not killed: {trouble(ended)}"
        tables = list(directory.root.glob("evaluation*.csv"))
        short = [path for path in tables if len(path.read_text().splitlines()) < 2]
        ended = runs.evaluate(directory.root)
        found = trouble(ended, (0,)) or ("half a table" if short else "")
        return found or runs.left_over(directory.root)

    return Trial(GROUP, f"evaluation, at {where}", work)


def _study(where: str, finished: Path, owner: Any, name: str, call: int) -> Trial:
    def work(folder: Path) -> str:
        root = folder / "study"
        ended = runs.study(root, before=lambda: runs.die_at(owner, name, call))
        if ended.status not in (KILLED, 0):
            return f"not killed: {trouble(ended)}"
        found = trouble(runs.study(root), (0,))
        if (
            not found
            and (root / "results.csv").read_bytes() != (finished / "results.csv").read_bytes()
        ):
            found = "results.csv differs from an unbroken study's"
        return found or runs.left_over(root)

    return Trial(GROUP, f"study, at {where}", work)


def _sweep(owner: Any, name: str) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        root = folder / "sweep"
        ended = runs.sweep(root, before=lambda: runs.die_at(owner, name, 1))
        if ended.status != KILLED:
            return f"not killed: {trouble(ended)}"
        found = trouble(runs.sweep(root), (0,))
        rows = (root / "results.csv").read_text().splitlines() if not found else []
        # A row for each seed of each of the two runs, below the names of columns.
        return found or ("" if len(rows) == 1 + 4 else f"{len(rows)} lines of results")

    return work
