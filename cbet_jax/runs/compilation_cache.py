"""Keep compiled programs on disk, so a resumed run need not compile again (JAX's own cache).

JAX tells programs, versions, flags, devices and processors apart: another machine compiles anew.
A file that cannot be read or written costs time and one line, and stops nothing.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from cbet_jax.runs import multihost

READING = "Error reading persistent compilation cache"  # JAX's warnings begin so
WRITING = "Error writing persistent compilation cache"


@contextlib.contextmanager
def kept_in(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Read compiled programs from a folder, and keep there what the block compiles.

    A folder that the user has chosen (`JAX_COMPILATION_CACHE_DIR`) is used instead.

    Args:
        folder: is made if it is not there.
        say: prints a line.
    """
    if jax.config.jax_compilation_cache_dir or not jax.config.jax_enable_compilation_cache:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        say(f"compiled programs are not kept: cannot write to {folder}: {error.strerror}")
        yield
        return
    with warnings.catch_warnings(record=True) as caught, _cache_in(folder):
        yield
    for warning in caught:
        text = str(warning.message)
        if text.startswith((READING, WRITING)):
            _delete_programs(folder)
            say(_trouble(folder, text))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )


@contextlib.contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    names: dict[str, str | None] = {
        "jax_compilation_cache_dir": str(folder.absolute()),
        # The programs include XLA's tuning of kernels; XLA's own cache files would stop the
        # compilation where they cannot be written.
        "jax_persistent_cache_enable_xla_caches": "none",
    }
    before = {name: getattr(jax.config, name) for name in names}
    _configure(names)
    try:
        yield
    finally:
        _configure(before)


def _configure(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        jax.config.update(name, value)
    reset_cache()  # without this JAX keeps using the folder it began with


def _delete_programs(folder: Path) -> None:
    """Delete the programs in a folder: JAX replaces no file, not even a partly written one."""
    if multihost.is_first():
        for path in folder.glob("*-cache"):
            with contextlib.suppress(OSError):
                path.unlink()


def _trouble(folder: Path, text: str) -> str:
    if text.startswith(READING):
        return f"a compiled program in {folder} cannot be read: it was compiled anew"
    return f"compiled programs are not kept in {folder}: {' '.join(text.split(': ', 1)[1].split())}"
