"""Commands: `python -m experiments.NAME`. The environment variables of JAX are checked first."""

import os
import sys
from pathlib import Path

from experiments.common import interrupts

#: numbers that JAX reads while it is imported, or before it knows its devices -> their ranges
NUMBERS = {
    "JAX_NUM_CPU_DEVICES": (1, 1024),
    "JAX_NUM_PROCESSES": (1, 2**20),
    "JAX_PROCESS_ID": (0, 2**20),
}


def refuse_bad_numbers() -> None:
    """End the process with one line if the environment has words where JAX wants numbers.

    Raises:
        SystemExit: a variable is no number in its range.
    """
    for name, (low, high) in NUMBERS.items():
        text = os.environ.get(name)
        if text is None:
            continue
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else -1
        if not low <= number <= high:
            line = f"error: {name} must be a number in {low}..{high}, not {text!r}"
            print(line, file=sys.stderr)
            raise SystemExit(2)


refuse_bad_numbers()
if sys.argv[:1] == ["-m"] or Path(sys.argv[0]).name == "cbet":  # a command is imported, in seconds
    interrupts.end_at_once()
