"""Which checkpoints a folder holds, and the record of each: read without JAX, and verified."""

import errno
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

RECORD = "checkpoint.json"


class DamagedCheckpointError(Exception):
    """A checkpoint whose files are not the ones that were written."""


def checkpoints(folder: Path) -> list[Path]:
    """List the complete checkpoints in a folder, oldest first."""
    found = (p for p in folder.glob("[0-9]*") if _is_number(p.name) and p.is_dir())
    return sorted(found, key=lambda path: int(path.name))


def read_record(path: Path) -> dict[str, Any]:
    """Return what a checkpoint says of itself: its settings, its position, its files' digests.

    Raises:
        DamagedCheckpointError: it is not what was written.
    """
    try:
        record: dict[str, Any] = json.loads(read_own(path / RECORD))
        digest = record.pop("digest")
        intact = digest == digest_of_record(record)
        intact = intact and {"position", "settings", "digests"} <= set(record)
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise DamagedCheckpointError(str(path)) from error
    if not intact:
        raise DamagedCheckpointError(str(path))
    return record


def digest_of_record(record: dict[str, Any]) -> str:
    """Return the digest of nested dictionaries, whatever the order of their entries."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 digest of an ordinary file.

    Raises:
        OSError: it is none, or cannot be read.
    """
    with os.fdopen(_open_to_read(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_own(path: Path) -> bytes:
    """Return the content of an ordinary file.

    Raises:
        OSError: it is none, or cannot be read.
    """
    with os.fdopen(_open_to_read(path), "rb") as file:
        return file.read()


def _open_to_read(path: Path) -> int:
    """Open a file that does not wait for anybody: neither a link, nor a pipe, nor a device."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
    return opened


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal()
