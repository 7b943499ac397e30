"""Jobs of a real SLURM: stand-ins for training and playing, disturbed when they first run.

What disturbs a run is chosen by its method; `rnd` is bad input.
"""

import subprocess
import sys
import time
from collections.abc import Sequence

import pytest

from cbet_jax.runs.signals import Stop
from experiments import minigrid_evaluate, minigrid_pretrain
from experiments.minigrid_pretrain import EXPERIMENT
from tests.support import small_study, small_sweep
from tests.support.small_sweep import TOLD, disturb
from tests.support.unrendered import leave_unrendered

__all__ = ["EXPERIMENT"]

DISTURBANCES = {
    "cbet": "scancel $SLURM_JOB_ID",
    "count": "scontrol requeue $SLURM_JOB_ID",
    "ride": "sbatch --partition=high --nodelist=$SLURMD_NODENAME --output=/dev/null --wrap=true",
    "curiosity": "scontrol update JobId=$SLURM_JOB_ID TimeLimit=1",  # minute: near its end
}
WAIT_SECONDS = 120.0  # for the signal; time limits are looked at each half minute


def disturb_with(command: str) -> None:
    """Run a shell command during a chunk, and wait until SLURM has this process told to stop."""

    def run_and_wait() -> None:
        subprocess.run(command, shell=True, check=True)
        end = time.monotonic() + WAIT_SECONDS
        while not TOLD:
            assert time.monotonic() < end, "nobody told this process to stop"
            time.sleep(0.01)

    disturb(run_and_wait)


def main(arguments: Sequence[str]) -> None:
    """Train, or evaluate what was trained."""
    (minigrid_evaluate if "--checkpoint" in arguments else minigrid_pretrain).main(arguments)


if __name__ == "__main__":
    patch = pytest.MonkeyPatch()
    if "--unroll" not in sys.argv:  # a part of a study
        small_study.stand_in(patch)
    else:
        patch.setattr("experiments.common.gridworlds.build", small_sweep.build)
    leave_unrendered(patch)
    patch.setattr(Stop, "reply", lambda stop: TOLD.append(stop.signal))
    for method, command in DISTURBANCES.items():
        if method in sys.argv and "--resume" not in sys.argv:
            disturb_with(command)
    main(sys.argv[1:])
