"""Explain errors of the system in one line: full disks, missing permissions, too little memory."""

import errno
import os
from typing import NamedTuple

BAD_INPUT = 2  # exit status
NOT_WRITTEN = 3  # exit status: a file could not be read or written
NOT_FINITE = 4  # exit status: a loss was not finite (1 is Python's, after a crash)

ONLY_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}
NO_FOLDER = {errno.EEXIST, errno.ENOTDIR}  # a file in a folder's place
NO_BACKEND = "Unable to initialize backend", "Unknown backend"  # beginnings of what JAX says
NO_MEMORY = "RESOURCE_EXHAUSTED"


class Refusal(NamedTuple):
    """An error message and its exit status."""

    line: str
    status: int


def refusal(error: BaseException) -> Refusal | None:
    """Explain an error of the system; return None for any other exception."""
    found = _of_file(error) or _of_memory(error) or _of_backend(error)
    if found or error.__cause__ is None:
        return found
    return refusal(error.__cause__)


def _of_file(error: BaseException) -> Refusal | None:
    if not isinstance(error, OSError) or error.errno is None:
        return None
    is_link = error.errno == errno.ELOOP
    reason = "it is a link, and links are not followed" if is_link else error.strerror
    verb = "write" if error.errno in ONLY_WRITING else "read or write"
    where = f" {os.fsdecode(error.filename)}" if isinstance(error.filename, str | bytes) else ""
    advice = getattr(error, "__notes__", [])  # what else to do
    status = BAD_INPUT if error.errno in NO_FOLDER else NOT_WRITTEN
    return Refusal("; ".join([f"cannot {verb}{where}: {reason}", *advice]), status)


def _of_memory(error: BaseException) -> Refusal | None:
    text = str(error).partition("\n")[0]
    if not isinstance(error, MemoryError) and not text.startswith(NO_MEMORY):
        return None
    detail = f" ({text.removeprefix(NO_MEMORY).strip(': ')})" if text else ""
    return Refusal(f"it takes more memory than there is{detail}", BAD_INPUT)


def _of_backend(error: BaseException) -> Refusal | None:
    text = str(error).partition("\n")[0]
    if isinstance(error, AssertionError) and not _has_devices():
        text = "JAX has no device of that kind here (a GPU needs the extra cuda12 or cuda13)"
    elif not isinstance(error, RuntimeError) or not text.startswith(NO_BACKEND):
        return None
    name = "JAX_PLATFORMS" if "JAX_PLATFORMS" in os.environ else "JAX_PLATFORM_NAME"
    return Refusal(f"{name}={os.environ.get(name, '')} cannot be used: {text}", BAD_INPUT)


def _has_devices() -> bool:
    """Return whether JAX has a device; without its plugin JAX fails an assertion."""
    import jax  # imported here: it takes seconds

    try:
        return bool(jax.devices())
    except (AssertionError, RuntimeError):
        return False
