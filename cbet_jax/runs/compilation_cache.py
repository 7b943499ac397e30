"""Keep compiled programs on disk, so a resumed run need not compile again (JAX's own cache).

Compiled programs are machine code: whoever can write them decides what this process does. So they
are kept in the user's own cache folder, not with a run, which may come from somebody else; and in
no folder that others can write. JAX tells programs, versions, flags, devices and processors apart:
another machine compiles anew. A file that cannot be read or written costs time and one line, and
stops nothing.
"""

import contextlib
import os
import stat
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jaxlib
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from cbet_jax.runs import multihost
from cbet_jax.runs.refusals import refusal

READING = "Error reading persistent compilation cache"  # JAX's warnings begin so
WRITING = "Error writing persistent compilation cache"
OWNER_ONLY = 0o700


def users_folder() -> Path:
    """Return where a user's compiled programs are, apart for each version of the compiler."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "cbet-jax" / f"jax-{jax.__version__}-{jaxlib.__version__}"


@contextlib.contextmanager
def kept(say: Callable[[str], None]) -> Iterator[None]:
    """Read compiled programs from the user's folder, and keep there what the block compiles.

    A folder that the user has chosen (`JAX_COMPILATION_CACHE_DIR`) is used instead.

    Args:
        say: prints a line.
    """
    chosen = jax.config.jax_compilation_cache_dir
    if not jax.config.jax_enable_compilation_cache or (chosen and "://" in chosen):
        yield
        return
    try:
        folder = Path(chosen) if chosen else users_folder()
        folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
        trouble = others_can_write(folder)
    except (OSError, RuntimeError) as error:  # of a user without a home, too
        found = refusal(error)
        trouble = found.line if found else str(error)
    if trouble:
        say(f"compiled programs are not kept: {trouble}")
        with _cache_in(None):
            yield
        return
    if chosen:
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


def others_can_write(folder: Path) -> str | None:
    """Return why a folder is not the user's alone, None if it is.

    Raises:
        OSError: it cannot be read.
    """
    found = folder.stat()
    if found.st_uid != os.geteuid():
        return f"{folder} belongs to another user, whose programs would be run"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"other users can write to {folder}, and their programs would be run"
    return None


@contextlib.contextmanager
def _cache_in(folder: Path | None) -> Iterator[None]:
    names: dict[str, str | None] = {
        "jax_compilation_cache_dir": str(folder.absolute()) if folder else None,
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
