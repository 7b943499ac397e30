"""C-BET in one file, and learners of other packages: `python -m experiments.examples.NAME`."""

from experiments.common import interrupts

interrupts.raise_again()  # an example is no command: Python answers Ctrl-C in it
