"""C-BET in one file, and other packages' learners: `python -m experiments.examples.NAME`."""

from experiments.common import interrupts

interrupts.raise_again()  # examples are no commands: Python itself handles Ctrl-C
