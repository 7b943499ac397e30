"""Run a grid of settings: `python -m experiments.sweep --grid method=cbet,count`."""

import sys

from experiments.sweeps.command import main

if __name__ == "__main__":
    main(sys.argv[1:])
