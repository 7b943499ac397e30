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
from typing import Any

LEAST_BYTES = 64 * 1024  # room that a folder must have


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
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.replace(temporary, path)


def open_own(path: Path) -> int:
    """Open a file of a run to read and write it, unchanged, and make it if it is missing.

    Raises:
        OSError: it is a link, or no ordinary file.
    """
    return _open_ordinary(path, os.O_RDWR | os.O_CREAT)


def open_to_read(path: Path) -> int:
    """Open a file of a run to read it.

    Raises:
        OSError: it is a link, or no ordinary file.
    """
    return _open_ordinary(path, os.O_RDONLY)


def read_own(path: Path) -> bytes:
    """Return the content of a file of a run.

    Raises:
        OSError: it is a link or no ordinary file, or cannot be read.
    """
    with os.fdopen(open_to_read(path), "rb") as file:
        return file.read()


def _open_ordinary(path: Path, flags: int) -> int:
    """Open an ordinary file: no link, and no pipe or device, which may block."""
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
    delete_left_over(folder)
    with temporary_file(folder / "room") as temporary, open(temporary, "wb") as file:
        file.write(os.urandom(LEAST_BYTES))
        file.flush()
        os.fsync(file.fileno())


def delete_left_over(folder: Path, *, below: bool = False) -> None:
    """Delete files that killed processes were writing in a folder (`below`: at any depth)."""
    for path in folder.rglob(".*.tmp*") if below else folder.glob(".*.tmp*"):
        if path.is_file():
            _delete_if_left_over(path)


@contextmanager
def temporary_file(path: Path) -> Iterator[Path]:
    """Yield a new empty file beside `path`, which is gone after the block.

    It is locked while its process lives; unlocked ones, left by killed processes, are deleted. It
    keeps the suffix of `path`, which tells writers of pictures the format.
    """
    for old in path.parent.glob(f".{glob.escape(path.stem)}.*.tmp{glob.escape(path.suffix)}"):
        _delete_if_left_over(old)
    while True:
        name = f".{path.stem}.{os.urandom(4).hex()}.tmp{path.suffix}"
        temporary = path.with_name(name)
        with contextlib.suppress(FileExistsError):
            opened = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            break
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield temporary
    finally:
        os.close(opened)
        temporary.unlink(missing_ok=True)


def _delete_if_left_over(path: Path) -> None:
    with contextlib.suppress(OSError):
        opened = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(opened)


def write_json(path: Path, content: Any) -> None:
    """Write JSON atomically (`replacing`)."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n")
