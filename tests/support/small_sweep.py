"""A training command for sweeps: the stand-in for training, disturbed when it runs first.

With `--method cbet` its job is preempted, as SLURM does it, with `count` it is lost, as is all of
its node; `rnd` is bad input. With any other it is left alone.
"""

import os
import signal
import sys
import time
from typing import Any

from cbet_jax.analysis import figures
from cbet_jax.config import SettingsError
from cbet_jax.runs import metrics_table
from cbet_jax.runs.signals import Stop
from experiments import minigrid_pretrain
from experiments.common import gridworlds
from experiments.minigrid_pretrain import EXPERIMENT
from tests.support.fake_program import fake_program

__all__ = ["EXPERIMENT"]

DISTURBED_CHUNK = 3
TOLD: list[int] = []  # signals that asked this process to stop


def preempt() -> None:
    """Signal all of the job, as SLURM does, and wait until this process is told to stop."""
    for process in (os.getppid(), os.getpid()):
        os.kill(process, signal.SIGUSR2)
    while not TOLD:
        time.sleep(0.01)


def lose() -> None:
    """Kills the job and this process."""
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def disturb(how: Any) -> None:
    """Call `how` while a chunk's metrics are written."""
    append, written = metrics_table.Table.append, []

    def append_disturbed(*arguments: Any) -> int:
        written.append(1)
        if len(written) == DISTURBED_CHUNK:
            how()
        return append(*arguments)

    metrics_table.Table.append = append_disturbed  # type: ignore[method-assign]


def build(settings: Any, mesh: Any, *_: Any) -> Any:
    """Return the stand-in, or refuse."""
    if settings.train.method == "rnd":
        raise SettingsError("rnd is refused here")
    return fake_program(settings, mesh)


if __name__ == "__main__":
    gridworlds.build = build
    figures.draw_learning_curves = lambda *_: []
    Stop.reply = lambda stop: TOLD.append(stop.signal)  # type: ignore[method-assign]
    if "--resume" not in sys.argv:
        for method, how in (("cbet", preempt), ("count", lose)):
            if method in sys.argv:
                disturb(how)
    minigrid_pretrain.main(sys.argv[1:])
