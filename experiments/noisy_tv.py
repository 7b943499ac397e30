"""The paper's noisy TV: `python -m experiments.noisy_tv --preset laptop --out DIR`.

Pre-trains C-BET and Count with and without resets in a MultiRoom, and in one where a ball
changes its colour at random, and evaluates the policies (paper, appendix "noisy environment").
In the directory of `experiments.paper` both reports stand side by side.
"""

import sys
from collections.abc import Sequence

from experiments.study import command
from experiments.study.contents import NOISY_METHODS
from experiments.study.options import Study

SETUPS = ("MultiRoom", "NoisyTV")
STUDY = Study(
    name="noisy_tv",
    program="experiments.noisy_tv",
    methods=NOISY_METHODS,
    setups=SETUPS,
    tasks={},
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study that the command line asks for."""
    command.main(STUDY, sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    main()
