"""The paper's ablation: `python -m experiments.minigrid_ablation --preset laptop --out DIR`.

Pre-trains on other rewards made of counts, with egocentric and panoramic states and changes,
with and without resets, and evaluates the policies (paper, appendix "ablation study"). In the
directory of `experiments.paper` it shares the runs that both have.
"""

from functools import partial

from experiments.study import command
from experiments.study.contents import ABLATION, THREE
from experiments.study.options import Study

METHODS = tuple(dict.fromkeys(method for table in ABLATION for method in table.methods))
STUDY = Study(
    name="ablation",
    program="experiments.minigrid_ablation",
    methods=METHODS,
    setups=THREE,
    tasks={},
)
main = partial(command.main, STUDY)

if __name__ == "__main__":
    main()
