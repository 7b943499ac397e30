"""Runs that compile at once, to be damaged, killed and resumed."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cbet_jax.runs import checkpoint, metrics_table
from cbet_jax.runs.directory import RunDirectory, checkpoints
from experiments import minigrid_evaluate, minigrid_pretrain
from experiments.common import gridworlds as programs
from experiments.evaluation import gridworlds
from tests.support.small_study import playing, walking
from tests.support.tiny import ARGUMENTS, CHUNK_FRAMES
from tests.torture.trial import Ended, run

CHUNKS = 5
FRAMES = CHUNKS * CHUNK_FRAMES
NEW = [*ARGUMENTS, "--frames", str(FRAMES), "--envs", "Unlock"]
HALF = 3  # chunks, after which a run is interrupted
EVALUATE = ["--episodes", "2", "--envs", "Unlock"]


def stand_in() -> None:
    """Give this process programs that compile at once."""
    programs.build = walking
    gridworlds.play_each_world = playing


def pretrain(root: Path, *arguments: str, before: Callable[[], Any] = lambda: None) -> Ended:
    """Train a new run in another process."""
    words = [*NEW, "--out", str(root), *arguments]
    return run_main(minigrid_pretrain.main, words, root, before)


def pretrain_unnamed() -> None:
    """Train a new run in this process, in a directory that it names itself."""
    stand_in()
    minigrid_pretrain.main(NEW)


def resume(root: Path, before: Callable[[], Any] = lambda: None) -> Ended:
    """Continue a run in another process."""
    return run_main(minigrid_pretrain.main, ["--out", str(root), "--resume"], root, before)


def evaluate(root: Path, *arguments: str, before: Callable[[], Any] = lambda: None) -> Ended:
    """Evaluate a run in another process."""
    return run_main(minigrid_evaluate.main, [str(root), *EVALUATE, *arguments], root, before)


def run_main(
    main: Callable[[list[str]], None],
    words: list[str],
    root: Path,
    before: Callable[[], Any] = lambda: None,
) -> Ended:
    """Run a command's `main` in another process, beside a run's directory."""

    def work() -> None:
        stand_in()
        before()
        main(words)

    return run(work, root.parent)


def die_at(owner: Any, name: str, call: int) -> None:
    """Let this process kill itself when it calls a function for so many times."""
    at(owner, name, call, lambda: os.kill(os.getpid(), signal.SIGKILL))


def at(owner: Any, name: str, call: int, action: Callable[[], Any]) -> None:
    """Let this process do something when it calls a function for so many times."""
    original, calls = getattr(owner, name), []

    def acting(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            action()
        return original(*arguments, **named)

    setattr(owner, name, acting)


def differs(root: Path, wanted: Path) -> str:
    """Return what of a finished run is not what an unbroken one has ("": nothing)."""
    found, expected = RunDirectory(root), RunDirectory(wanted)
    if found.metrics.read_bytes() != expected.metrics.read_bytes():
        return "metrics.csv differs from an unbroken run's"
    if found.settings() != expected.settings():
        return "the settings differ from an unbroken run's"
    ends = [checkpoints(each.checkpoints) for each in (found, expected)]
    if not ends[0] or ends[0][-1].name != ends[1][-1].name:
        return "the last checkpoint is missing"
    arrays, others = (checkpoint.read_arrays(each[-1])[0] for each in ends)
    if arrays.keys() != others.keys():
        return "the last checkpoint has other arrays"
    same = all(np.array_equal(arrays[name], others[name]) for name in arrays)
    return "" if same else "the last checkpoint differs from an unbroken run's"


def left_over(root: Path) -> str:
    """Return a hidden file that a killed process has left, if one is still there."""
    found = [p for p in root.rglob(".*") if p.name != ".lock"]
    return f"left over: {found[0].relative_to(root)}" if found else ""


def interrupt_after(chunks: int) -> None:
    """Let this process send itself Ctrl-C while it writes the metrics of a chunk."""
    append, calls = metrics_table.Table.append, []

    def append_and_interrupt(*arguments: Any) -> int:
        calls.append(1)
        if len(calls) == chunks:
            signal.raise_signal(signal.SIGINT)
        return append(*arguments)

    metrics_table.Table.append = append_and_interrupt  # type: ignore[method-assign]
