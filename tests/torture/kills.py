"""Kills: what was saved stays, the same command continues, and the numbers are the same."""

import os
import random
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cbet_jax.runs import manifest, metrics_table
from cbet_jax.runs.directory import RunDirectory
from experiments.evaluation import evaluation_table
from tests.torture import runs
from tests.torture.trial import Trial, trouble

KILLED_OR_DONE = (-signal.SIGKILL, 0)

# Where a process is killed: a function, and at which of its calls.
type Place = tuple[Any, str, tuple[int, ...]]
TRAINING: tuple[Place, ...] = (
    (os, "replace", (1, 2, 3, 5, 8, 13)),
    (os, "rename", (1, 2, 5)),
    (os, "link", (1,)),
    (os, "fsync", (1, 2, 5, 9)),
    (Path, "unlink", (1, 2, 5, 8)),
    (np, "savez", (1, 3, 5)),
    (np.lib.format, "write_array", (1, 5, 40)),
    (metrics_table.Table, "append", (1, 2, 3, 5)),
    (metrics_table.Table, "sync", (1, 3, 5)),
    (manifest.Session, "record", (1, 2, 4)),
    (Figure, "savefig", (1, 2)),
)
EVALUATING: tuple[Place, ...] = (
    (os, "link", (1,)),
    (os, "replace", (1,)),
    (evaluation_table, "save", (1,)),
    (evaluation_table, "_draw", (1,)),
)
MOMENTS = 10  # kills by the clock, wherever the run then is


def trials(whole: Path, half: Path) -> Iterator[Trial]:
    """Yield trials of kills; all runs must end as the finished one has."""
    for command, work, places in (
        ("training", _training, TRAINING),
        ("evaluation", _evaluation, EVALUATING),
    ):
        for owner, name, calls in places:
            for call in calls:
                arm = partial(runs.die_at, owner, name, call)
                yield Trial("kills", f"{command}, at {name} {call}", partial(work, whole, arm))
    draw = random.Random(1)
    for _ in range(MOMENTS):
        seconds = draw.uniform(0.2, 6)
        arm = partial(_die_after, seconds)
        yield Trial("kills", f"training, after {seconds:.2f} s", partial(_training, whole, arm))


def _die_after(seconds: float) -> None:
    kill = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGKILL))
    kill.daemon = True
    kill.start()


def _training(whole: Path, arm: Callable[[], Any], folder: Path) -> str:
    root = folder / "run"
    ended = runs.pretrain(root, before=arm)
    if ended.status not in KILLED_OR_DONE:
        return f"not killed: {trouble(ended)}"
    is_begun = RunDirectory(root).config.exists()
    ended = runs.resume(root) if is_begun else runs.pretrain(root)
    return trouble(ended, (0,)) or runs.differs(root, whole) or runs.left_over(root)


def _evaluation(whole: Path, arm: Callable[[], Any], folder: Path) -> str:
    root = shutil.copytree(whole, folder / "run")
    ended = runs.evaluate(root, before=arm)
    if ended.status not in KILLED_OR_DONE:
        return f"not killed: {trouble(ended)}"
    tables = list(root.glob("evaluation*.csv"))
    short = [path for path in tables if len(path.read_text().splitlines()) < 2]
    found = trouble(runs.evaluate(root), (0,)) or ("half a table" if short else "")
    return found or runs.left_over(root)
