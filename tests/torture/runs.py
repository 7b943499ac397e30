"""Runs that compile at once, to be damaged, killed and resumed."""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cbet_jax.runs import checkpoint, checkpoint_arrays
from cbet_jax.runs.directory import RunDirectory
from experiments import minigrid_evaluate, minigrid_pretrain, paper
from experiments import sweep as sweep_command
from experiments.common.presets import PRESETS
from experiments.evaluation import gridworlds
from experiments.study import execute
from experiments.sweeps import plan
from tests.support.fake_program import fake_program
from tests.support.small_study import TINY, playing, walking
from tests.support.tiny import ARGUMENTS, CHUNK_FRAMES
from tests.torture.trial import Ended, run

ROOT = Path(__file__).parents[2]
CHUNKS = 5
FRAMES = CHUNKS * CHUNK_FRAMES
NEW = [*ARGUMENTS, "--frames", str(FRAMES), "--envs", "Unlock"]
HALF = 3  # chunks, after which a run is interrupted
EVALUATE = ["--episodes", "2", "--envs", "Unlock"]


def stand_in() -> None:
    """Give this process programs that compile at once."""
    PRESETS["smoke"] = TINY
    minigrid_pretrain.build = walking
    execute.build = walking
    gridworlds.play_each_world = playing


def pretrain(root: Path, *arguments: str, before: Callable[[], Any] = lambda: None) -> Ended:
    """Train a new run in another process."""
    return run(
        lambda: _main(minigrid_pretrain, [*NEW, "--out", str(root), *arguments], before),
        root.parent,
    )


def resume(root: Path, before: Callable[[], Any] = lambda: None) -> Ended:
    """Continue a run in another process."""
    return run(
        lambda: _main(minigrid_pretrain, ["--out", str(root), "--resume"], before), root.parent
    )


def evaluate(root: Path, *arguments: str, before: Callable[[], Any] = lambda: None) -> Ended:
    """Evaluate a run in another process."""
    words = [str(root), *EVALUATE, *arguments]
    return run(lambda: _main(minigrid_evaluate, words, before), _place(root))


def study(root: Path, *arguments: str, before: Callable[[], Any] = lambda: None) -> Ended:
    """Begin or continue a study in another process."""
    words = ["--preset", "smoke", "--seeds", "1", "--setups", "DoorKey", "--envs", "Unlock"]
    words += ["--methods", "cbet", "--tasks", "--episodes", "2", "--out", str(root), *arguments]
    return run(lambda: _main(paper, words, before), _place(root))


def sweep(root: Path, before: Callable[[], Any] = lambda: None) -> Ended:
    """Begin or continue a sweep of two runs in another process; its jobs are further ones."""
    words = ["--out", str(root), "--grid", "method=ablation-changes,ablation-sum", *ARGUMENTS]
    words += ["--frames", str(FRAMES)]

    def work() -> None:
        plan.COMMANDS["pretrain"] = "tests.support.small_sweep"
        minigrid_pretrain.build = fake_program
        before()
        sweep_command.main(words)

    return run(work, root.parent, {"PYTHONPATH": str(ROOT), "SUBMITIT_LOG_LEVEL": "NOCONFIG"})


def _place(root: Path) -> Path:
    """Return the folder to work in: the nearest that is there."""
    return next(path for path in root.parents if _is_folder(path))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # its name is too long
        return False


def _main(command: Any, words: list[str], before: Callable[[], Any]) -> None:
    stand_in()
    before()
    command.main(words)


def die_at(owner: Any, name: str, call: int) -> None:
    """Let this process kill itself when it calls a function for so many times."""
    original, calls = getattr(owner, name), []

    def dying(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **named)

    setattr(owner, name, dying)


def copy(source: Path, target: Path) -> RunDirectory:
    """Return a copy of a run."""
    return RunDirectory(shutil.copytree(source, target))


def differs(root: Path, wanted: Path) -> str:
    """Return what of a finished run is not what an unbroken one has ("": nothing)."""
    found, expected = RunDirectory(root), RunDirectory(wanted)
    if found.metrics.read_bytes() != expected.metrics.read_bytes():
        return "metrics.csv differs from an unbroken run's"
    if found.settings() != expected.settings():
        return "the settings differ from an unbroken run's"
    ends = [checkpoint.checkpoints(each.checkpoints) for each in (found, expected)]
    if not ends[0] or ends[0][-1].name != ends[1][-1].name:
        return "the last checkpoint is missing"
    arrays, others = (checkpoint_arrays.read_arrays(each[-1]) for each in ends)
    if arrays.keys() != others.keys():
        return "the last checkpoint has other arrays"
    same = all(np.array_equal(arrays[name], others[name]) for name in arrays)
    return "" if same else "the last checkpoint differs from an unbroken run's"


def left_over(root: Path) -> str:
    """Return the hidden files that a killed process has left and nobody has deleted."""
    found = [p for p in root.rglob(".*") if p.name != ".lock"]
    return f"left over: {found[0].relative_to(root)}" if found else ""


def interrupt_after(chunks: int) -> None:
    """Let this process send itself Ctrl-C while it writes the metrics of a chunk."""
    from cbet_jax.runs import metrics_table

    append, calls = metrics_table.Table.append, []

    def append_and_interrupt(*arguments: Any) -> int:
        calls.append(1)
        if len(calls) == chunks:
            signal.raise_signal(signal.SIGINT)
        return append(*arguments)

    metrics_table.Table.append = append_and_interrupt  # type: ignore[method-assign]
