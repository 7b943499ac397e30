"""The paper's study: `python -m experiments.paper --preset laptop --out runs/study`.

Pre-trains every method in every setup, evaluates the policies in ten worlds, learns tasks with
and without them, and writes one table for each table and figure of the paper (section 4,
appendices "ablation" and "supplemental results"). It can be stopped at any moment; the same
command continues it.
"""

from functools import partial

from experiments.study import command
from experiments.study.contents import METHODS, TASKS, THREE
from experiments.study.options import Study

STUDY = Study(name="paper", program="experiments.paper", methods=METHODS, setups=THREE, tasks=TASKS)
main = partial(command.main, STUDY)

if __name__ == "__main__":
    main()
