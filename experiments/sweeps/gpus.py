"""Which of this machine's GPUs each of the runs sees that a sweep makes at once."""

import os

from cbet_jax.config import SettingsError

VARIABLE = "CUDA_VISIBLE_DEVICES"
NONE = ("", "-1")  # how it says that there are to be none


def refuse_too_few(runs: int) -> None:
    """Check that each of several runs can have a GPU by itself, if some are named.

    Raises:
        SettingsError: it cannot; two runs on one GPU would each take most of its memory.
    """
    named = os.environ.get(VARIABLE)
    number = runs if named is None or named in NONE else len(named.split(","))
    if number < runs:
        raise SettingsError(
            f"parallel must be at most {number}, not {runs}: {VARIABLE}={named} has a GPU for "
            "no more runs"
        )


def of_place(place: int, places: int) -> str | None:
    """Return which of the GPUs that this process is told of belong to one of its places.

    Args:
        place: from 0 on.
        places: how many runs are made at once.

    Returns:
        Their names, as the variable has them; None for all that there are.
    """
    named = os.environ.get(VARIABLE)
    if named is None or named in NONE or places == 1:
        return named
    return ",".join(named.split(",")[place::places])
