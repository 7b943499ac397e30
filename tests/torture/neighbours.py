"""Other processes and the user beside a run: nothing that somebody else made is lost."""

import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cbet_jax.runs import metrics_table
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.run_files import RunFiles
from experiments import compare, report
from tests.support.tiny import CHUNK_FRAMES
from tests.torture import runs
from tests.torture.trial import Ended, Trial, run, trouble

MOVES: tuple[tuple[Any, str, tuple[int, ...]], ...] = (
    # Where a run is as its directory is moved: a function, and at which of its calls.
    (os, "replace", (3, 5, 8)),
    (os, "rename", (1, 2, 5)),
    (os, "fsync", (2, 5, 9)),
    (os, "mkdir", (3, 5, 8)),
    (np, "savez", (1, 3)),
    (metrics_table.Table, "append", (1, 3, 5)),
    (metrics_table.Table, "sync", (1, 3)),
    (RunFiles, "record", (2, 4)),
)
THEN = ("succeeded", "moved", "deleted")
MOMENTS = 6  # moves by the clock
FOREIGN = (
    *(".draft.tmp", ".draft.tmp.md", ".draft.0a.tmp.csv", ".a.0A1B2C3D.tmp", "notes.0a1b2c3d.tmp"),
    *("world-of-mine.py", "figures/.mine.tmp.png", "checkpoints/7/notes", "checkpoints/notes"),
    *("checkpoints/.mine.tmp/notes", "checkpoints/0000000000007.mine/notes", "policies/.x.tmp"),
)


def trials(whole: Path, half: Path) -> Iterator[Trial]:
    """Yield trials of moved directories, of files of the user's, and of two starts at once."""
    trial = partial(Trial, "neighbours")
    for owner, name, calls in MOVES:
        for call in calls:
            for then in THEN:
                arm = partial(runs.at, owner, name, call)
                work = partial(_moved, whole, arm, then)
                yield trial(f"{then} at {name} {call}", work)
    draw = random.Random(1)
    for _ in range(MOMENTS):
        seconds = draw.uniform(0.2, 4)
        work = partial(_moved, whole, partial(_after, seconds), "succeeded")
        yield trial(f"succeeded after {seconds:.2f} s", work)
    yield trial("files of the user's", partial(_foreign, half))
    for number in range(4):
        yield trial(f"two starts at once {number}", _two_starts)
        yield trial(f"two reports at once {number}", partial(_two_reports, whole))
    yield trial("two starts without --out at once", _two_unnamed)


def _after(seconds: float, action: Callable[[], Any]) -> None:
    timer = threading.Timer(seconds, action)
    timer.daemon = True
    timer.start()


def _moved(whole: Path, arm: Callable[[Callable[[], Any]], None], then: str, folder: Path) -> str:
    root, old = folder / "run", folder / "old"

    def move() -> None:
        if root.exists():
            root.rename(old)
            if then == "succeeded":
                shutil.copytree(whole, root)
            if then == "deleted":
                shutil.rmtree(old)

    ended = runs.pretrain(root, before=partial(arm, move))
    is_moved = old.exists() or not root.exists()
    found = trouble(ended, (0, 2, 3) if is_moved else (0,))  # 2: moved before it had begun
    if not found and then == "succeeded" and old.exists():
        found = _changed(whole, root)
    return found


def _changed(before: Path, after: Path) -> str:
    """Return what differs between two folders; pictures are drawn again from the same table."""
    there, here = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (before, after)
    )
    odd = [name for name in there.keys() | here.keys() if there.get(name) != here.get(name)]
    odd = [name for name in odd if name.suffix != ".png"]
    return f"the other run was changed: {odd[0]}" if odd else ""


def _foreign(half: Path, folder: Path) -> str:
    root = shutil.copytree(half, folder / "run")
    other = shutil.copytree(half, folder / "other")
    places = [root / name for name in FOREIGN]
    places += [folder / name for name in FOREIGN if "/" not in name]
    for path in places:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")
    both = [str(root), str(other)]
    for ended in (
        runs.resume(root),
        runs.evaluate(root),
        runs.evaluate(root, "--out", str(folder)),
        runs.run_main(compare.main, [*both, "--out", str(folder)], root),
        runs.run_main(report.main, both, root),
    ):
        if found := trouble(ended, (0,)):
            return found
    gone = [path for path in places if not path.exists() or path.read_text() != "precious"]
    return f"lost: {gone[0].relative_to(folder)}" if gone else ""


def _together(works: list[Callable[[], Ended]]) -> list[Ended]:
    ended: list[Ended] = []
    threads = [threading.Thread(target=lambda w=work: ended.append(w())) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ended


def _two_starts(folder: Path) -> str:
    root = folder / "run"
    frames = [str(chunks * CHUNK_FRAMES) for chunks in (runs.CHUNKS, runs.CHUNKS + 1)]
    ended = _together([partial(runs.pretrain, root, "--frames", each) for each in frames])
    found = next(filter(None, (trouble(each, (0, 2)) for each in ended)), "")
    statuses = sorted(str(each.status) for each in ended)
    if not found and statuses != ["0", "2"]:
        found = f"the statuses are {statuses}"
    directory = RunDirectory(root)
    if not found and directory.settings().train.frames != directory.saved_frames():
        found = "the settings are those of the run that was refused"
    return found


def _two_reports(whole: Path, folder: Path) -> str:
    root = shutil.copytree(whole, folder / "run")
    ended = _together([partial(runs.run_main, report.main, [str(root)], root)] * 2)
    said = sorted(each.out.split()[-1] for each in ended)
    wanted = sorted(str(root / name) for name in ("report.html", "report-2.html"))
    found = next(filter(None, (trouble(each, (0,)) for each in ended)), "")
    return found or ("" if said == wanted else f"saved {said}")


def _two_unnamed(folder: Path) -> str:
    ended = _together([lambda: run(runs.pretrain_unnamed, folder)] * 3)
    found = next(filter(None, (trouble(each, (0,)) for each in ended)), "")
    there = len(list((folder / "runs").iterdir()))
    return found or ("" if there == len(ended) else f"{there} directories")
