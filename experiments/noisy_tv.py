"""The paper's noisy TV: `python -m experiments.noisy_tv --preset laptop --out DIR`.

Pre-trains C-BET and Count with and without resets in a MultiRoom, and in one where a ball
changes its colour at random, and evaluates the policies (paper, appendix "noisy environment").
In the directory of `experiments.paper` both reports stand side by side.
"""

from functools import partial

from experiments.study import command
from experiments.study.contents import NOISY_METHODS
from experiments.study.options import Study

SETUPS = ("MultiRoom", "NoisyTV")
STUDY = Study(
    name="noisy_tv", program="experiments.noisy_tv", methods=NOISY_METHODS, setups=SETUPS, tasks={}
)
main = partial(command.main, STUDY)

if __name__ == "__main__":
    main()
