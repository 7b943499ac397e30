"""Surroundings that change numbers: a run continues only where it began."""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import jax

from tests.torture import runs
from tests.torture.trial import Trial, trouble

OTHERS = {
    "jax_threefry_partitionable": False,
    "jax_default_matmul_precision": "highest",
    "jax_random_seed_offset": 1,
    "XLA_FLAGS": "--xla_cpu_enable_fast_math=true",
}


def trials(whole: Path, half: Path) -> Iterator[Trial]:
    """Yield trials that continue an interrupted run elsewhere, and then where it began."""
    for name, value in OTHERS.items():
        work = partial(_resumed, name, value, whole, half)
        yield Trial("surroundings", f"resume under {name}={value}", work)


def _set(name: str, value: object) -> None:
    if name.isupper():
        os.environ[name] = f"{os.environ.get(name, '')} {value}"
    else:
        jax.config.update(name, value)


def _resumed(name: str, value: object, whole: Path, half: Path, folder: Path) -> str:
    root = shutil.copytree(half, folder / "run")
    ended = runs.resume(root, before=partial(_set, name, value))
    named = "" if name.upper() in ended.err else f"{name} is not named"
    found = trouble(ended, (2,)) or named or trouble(runs.resume(root), (0,))
    return found or runs.differs(root, whole) or runs.left_over(root)
