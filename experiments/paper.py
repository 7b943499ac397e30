"""The paper's study: `python -m experiments.paper --preset laptop --out runs/study`.

Pre-trains every method in every setup, evaluates the policies in ten worlds, learns tasks with
and without them, and writes one table for each table and figure of the paper (section 4,
appendices "ablation" and "supplemental results"). It can be stopped at any moment; the same
command continues it.
"""

import sys
from collections.abc import Sequence

from experiments.study import command
from experiments.study.contents import METHODS, TASKS, THREE
from experiments.study.options import Study

STUDY = Study(
    name="paper",
    program="experiments.paper",
    methods=METHODS,
    setups=THREE,
    tasks=TASKS,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study that the command line asks for."""
    command.main(STUDY, sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    main()
