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
UNABLE = {  # settings under which no program here compiles -> their value
    "jax_debug_nans": True,  # a metric without data is NaN
    "jax_disable_jit": True,
    "jax_enable_x64": True,
    "jax_numpy_dtype_promotion": "strict",
    "jax_numpy_rank_promotion": "raise",
}


def problem() -> str:
    """Return which of the environment's variables no command can run with, '' if there is none."""
    for name, (low, high) in NUMBERS.items():
        text = os.environ.get(name, str(low))
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else -1
        if not low <= number <= high:
            return f"{name} must be a number in {low}..{high}, not {text!r}"
    if not any(name.startswith("JAX_") for name in os.environ):
        return ""
    try:
        import jax  # only here: it takes a second
    except Exception as error:
        return f"JAX cannot be imported with these variables: {' '.join(str(error).split())}"
    found = (name for name, value in UNABLE.items() if getattr(jax.config, name) == value)
    named = (f"{name.upper()}={UNABLE[name]} cannot be used: no command runs" for name in found)
    return next(named, "")


if sys.argv[:1] == ["-m"] or Path(sys.argv[0]).name == "cbet":  # a command is imported, in seconds
    interrupts.end_at_once()
if line := problem():
    print(f"error: {line}", file=sys.stderr)
    raise SystemExit(2)
