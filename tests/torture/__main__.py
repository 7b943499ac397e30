"""Run the campaign, print trials and failures by group: `python -m tests.torture [GROUP ...]`.

Command lines run in forked processes that have imported everything; training is a stand-in that
compiles at once. What was killed was a process of its own, by SIGKILL.
"""

import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path

os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("MPLBACKEND", "agg")

from experiments.common.commands import MODULES
from tests.torture import damage, disks, hostile, kills, lines, runs
from tests.torture.trial import Trial, results, trouble

SIDE_BY_SIDE = 2
TOLD = 50  # so many trials are told of at once
FAILED = 1  # exit status


def main(words: list[str]) -> int:
    """Run the groups that the words name (none: all), and return the exit status."""
    for module in MODULES.values():
        import_module(module)
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    tried: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    began = time.monotonic()
    try:
        chosen = [make for name, make in groups(folder).items() if not words or name in words]
        trials = chain.from_iterable(make() for make in chosen)
        for trial, found in results(trials, SIDE_BY_SIDE):
            tried[trial.group] += 1
            failed[trial.group] += bool(found)
            if tried.total() % TOLD == 0:
                print(f"{tried.total()} tried", file=sys.stderr, flush=True)
            if found:
                print(f"FAILED {trial.group}: {trial.name}: {found}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for group, number in tried.items():
        print(f"{group:20} {number:5} trials {failed[group]:5} failures")
    print(f"{'all':20} {tried.total():5} trials {failed.total():5} failures", end="  ")
    print(f"in {(time.monotonic() - began) / 60:.0f} min")
    return FAILED if failed.total() or not tried.total() else 0


def groups(folder: Path) -> dict[str, Callable[[], Iterator[Trial]]]:
    """Return what makes the trials of each group; runs that several need are made once."""
    whole, half, study = folder / "whole", folder / "half", folder / "study"

    def need(*roots: Path) -> None:
        for root in roots:
            if not root.exists():
                _make(root)

    def with_runs(
        make: Callable[..., Iterator[Trial]], *roots: Path
    ) -> Callable[[], Iterator[Trial]]:
        def made() -> Iterator[Trial]:
            need(*roots)
            yield from make(*roots)

        return made

    return {
        "lines": lambda: lines.trials(folder),
        "displays": lines.display_trials,
        "damage": with_runs(damage.trials, half, whole),
        "kills": with_runs(kills.trials, whole, study),
        "disks": with_runs(disks.trials, whole, half),
        "hostile": with_runs(hostile.trials, whole, half),
    }


def _make(root: Path) -> None:
    """Make a finished run, an interrupted one, or a finished study."""
    if root.name == "study":
        ended = runs.study(root)
    elif root.name == "whole":
        ended = runs.pretrain(root)
    else:
        stop = lambda: runs.interrupt_after(runs.HALF)  # noqa: E731
        ended = runs.pretrain(root, before=stop)
    found = trouble(ended, (130,) if root.name == "half" else (0,))
    if found:
        raise RuntimeError(f"{root.name}: {found}\n{ended.out}\n{ended.err}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
