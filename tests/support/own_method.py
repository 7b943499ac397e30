"""A file with a method of somebody's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

from cbet_jax.intrinsic import METHODS


@contextmanager
def own_method(folder: Path, content: str) -> Iterator[Path]:
    """Write `bonus.py`; methods that are loaded from it are forgotten afterwards."""
    path, before = folder / "bonus.py", dict(METHODS)
    path.write_text(dedent(content))
    try:
        yield path
    finally:
        METHODS.clear()
        METHODS.update(before)
