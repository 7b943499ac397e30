"""Run the campaign, print trials and failures by group: `python -m tests.torture [GROUP ...]`.

Commands run in forked processes that have imported everything; training is a stand-in that
compiles at once. What was killed was a process of its own, by SIGKILL.
"""

import os
import sys
import tempfile
from collections import Counter
from functools import partial
from itertools import chain
from pathlib import Path

os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("MPLBACKEND", "agg")

from tests.torture import disks, kills, neighbours, runs, strangers, surroundings
from tests.torture.trial import results, trouble

SIDE_BY_SIDE = 2
MODULES = kills, disks, strangers, neighbours, surroundings
GROUPS = {module.__name__.rpartition(".")[2]: module for module in MODULES}
FAILED = 1  # exit status


def main(words: list[str]) -> int:
    """Run the groups that the words name (or all), and return the exit status."""
    tried: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        whole, half = Path(folder, "whole"), Path(folder, "half")  # finished, and interrupted
        interrupt = partial(runs.interrupt_after, runs.HALF)
        found = trouble(runs.pretrain(whole), (0,))
        if found := found or trouble(runs.pretrain(half, before=interrupt), (130,)):
            raise RuntimeError(found)
        groups = [group for name, group in GROUPS.items() if not words or name in words]
        trials = list(chain.from_iterable(group.trials(whole, half) for group in groups))
        for trial, found in results(trials, SIDE_BY_SIDE):
            tried[trial.group] += 1
            failed[trial.group] += bool(found)
            if found:
                print(f"FAILED {trial.group}: {trial.name}: {found}", flush=True)
    for group, number in tried.items():
        print(f"{group:10} {number:5} trials {failed[group]:5} failures")
    return FAILED if failed.total() or not tried.total() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
