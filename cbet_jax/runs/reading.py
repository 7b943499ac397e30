"""Read files that may be damaged, or that a stranger wrote: of a run, a study, a table.

Only ordinary files are opened, and links only within their folder. Files read whole have at most
`MOST_BYTES`, except metrics.csv. Whatever is wrong with one is said in one line.
"""

import csv
import errno
import hashlib
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from cbet_jax.runs.atomic_write import open_ordinary, write_json

MOST_BYTES = 2**30  # of a file that is read whole
DIGEST = "digest"  # the SHA-256 of all other entries of a JSON file


class RunDirectoryError(Exception):
    """A run directory that cannot be used as asked, with one line that says why."""


class UnreadableError(RunDirectoryError):
    """A file that is damaged or foreign, with one line that says why."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Explain whatever error the content of a file leads to.

    Raises:
        UnreadableError: the block has failed.
    """
    try:
        yield
    except (RunDirectoryError, MemoryError):
        raise
    except Exception as error:  # a damaged file can raise any error of its readers
        said = error.strerror if isinstance(error, OSError) else str(error)
        said = f"it lacks {said}" if isinstance(error, KeyError) else said
        reason = (said or type(error).__name__).splitlines()[0]
        raise UnreadableError(f"{path} cannot be read: {reason}") from error


def open_to_read(path: Path) -> BinaryIO:
    """Open an ordinary file to read it.

    Raises:
        OSError: it is none, or a link that leads out of its folder.
    """
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(path.parent)):
        raise OSError(errno.EINVAL, "it is a link that leads out of its folder", str(path))
    return os.fdopen(open_ordinary(real, os.O_RDONLY), "rb")


def read_bytes(path: Path, length: int | None = None) -> bytes:
    """Return the content of a file, or its first bytes.

    Raises:
        UnreadableError: it cannot be read, or is too large.
    """
    with reading(path), open_to_read(path) as file:
        size = os.fstat(file.fileno()).st_size
        if length is None and size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        return file.read(size if length is None else min(length, size))


def read_json(path: Path) -> dict[str, Any]:
    """Return the entries of a JSON file, whose digest is right if it has one.

    Raises:
        UnreadableError: it cannot be read, or was changed.
    """
    with reading(path):
        content: dict[str, Any] = dict(json.loads(read_bytes(path)))
        if DIGEST in content and content[DIGEST] != digest_of(content):
            raise ValueError("it was changed since it was written")
        return content


def write_with_digest(path: Path, content: dict[str, Any], *, again: bool = True) -> None:
    """Write a JSON file with a digest, by which `read_json` detects changes (`write_json`)."""
    write_json(path, {**content, DIGEST: digest_of(content)}, again=again)


def digest_of(content: dict[str, Any]) -> str:
    """Return the digest of entries, whatever their order."""
    own = {name: value for name, value in content.items() if name != DIGEST}
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()


def read_table(path: Path) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    """Return the columns and the rows of a CSV file.

    Raises:
        UnreadableError: it cannot be read.
    """
    with reading(path):
        text = io.StringIO(read_bytes(path).decode(errors="replace"), newline="")
        reader = csv.DictReader(text)
        return tuple(reader.fieldnames or ()), list(reader)
