"""Write files atomically, and never through a link.

A run's directory may come from a stranger: links in it must not lead writes to other places.
"""

import contextlib
import errno
import fcntl
import glob
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

LEAST_BYTES = 64 * 1024  # room that a folder must have
HEX = "[0-9a-f]" * 8  # in the name of each temporary file: nobody else's has all of its marks


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces `path` if the block succeeds.

    If the process dies, the file is as it was before, or complete. A link at `path` is replaced,
    not followed.
    """
    with temporary_file(path) as temporary:
        yield temporary
        os.replace(temporary, path)


@contextmanager
def creating(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, which becomes `path` if the block succeeds.

    Raises:
        FileExistsError: `path` exists by then, and stays as it is.
    """
    with temporary_file(path) as temporary:
        yield temporary
        give_name(temporary, path)


def give_name(temporary: Path, path: Path) -> None:
    """Move a complete file to a free path.

    Raises:
        FileExistsError: `path` exists, and stays as it is.
    """
    try:
        os.link(temporary, path)
    except OSError:  # a name in use, or a file system without hard links
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.replace(temporary, path)


def open_own(path: Path) -> int:
    """Open a file of a run to read and write it, unchanged, and make it if it is missing.

    Raises:
        OSError: it is a link, or no ordinary file.
    """
    return open_ordinary(path, os.O_RDWR | os.O_CREAT)


def open_ordinary(path: Path, flags: int) -> int:
    """Open an ordinary file: no link, and no pipe or device, which may block.

    Raises:
        OSError: it is none, or cannot be opened.
    """
    opened = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
    return opened


def set_aside(path: Path) -> Path:
    """Rename a damaged file or folder, which frees its path and loses nothing."""
    number = 1
    while os.path.lexists(target := path.with_name(f"{path.name}.damaged-{number}")):
        number += 1
    return path.rename(target)


def check_room(folder: Path) -> None:
    """Write and delete a small file, to learn before long work whether its results can be written.

    Args:
        folder: made if it is missing.

    Raises:
        OSError: it cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with temporary_file(folder / "room") as temporary, open(temporary, "wb") as file:
            file.write(os.urandom(LEAST_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        error.filename = str(folder)
        raise


def delete_left_over(folder: Path) -> None:
    """Delete files that killed processes were writing in a folder of ours."""
    for ending in ("", ".*"):
        _delete_unlocked(folder, f".*.{HEX}.tmp{ending}")


@contextmanager
def temporary_file(path: Path) -> Iterator[Path]:
    """Yield a new empty file beside `path`, which is gone after the block.

    It is locked while its process lives; unlocked ones, left by killed processes, are deleted. It
    keeps the suffix of `path`, which tells writers of pictures the format.
    """
    stem, suffix = glob.escape(path.stem), glob.escape(path.suffix)
    _delete_unlocked(path.parent, f".{stem}.{HEX}.tmp{suffix}")
    while True:
        temporary = path.with_name(f".{path.stem}.{os.urandom(4).hex()}.tmp{path.suffix}")
        with contextlib.suppress(FileExistsError):
            opened = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(opened, fcntl.LOCK_EX)
            if temporary.exists():
                break
            os.close(opened)  # another process deleted it before it was locked
    try:
        yield temporary
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk names none
        raise
    finally:
        os.close(opened)
        temporary.unlink(missing_ok=True)


def _delete_unlocked(folder: Path, names: str) -> None:
    for path in folder.glob(names):
        with contextlib.suppress(OSError):
            opened = open_ordinary(path, os.O_RDWR)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(opened)


def write_json(path: Path, content: Any, *, again: bool = True) -> None:
    """Write JSON atomically; only `again` replaces a file (else: FileExistsError)."""
    with (replacing if again else creating)(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n")


def open_text(path: Path) -> TextIO:
    """Open a file to write text, in any locale and with any name in it."""
    return open(path, "w", newline="", encoding="utf-8", errors="backslashreplace")
