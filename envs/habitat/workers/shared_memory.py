"""Memory that processes share, and that no file system knows the name of.

It lives as long as somebody has it open: the kernel frees it, however its users end.
"""

import os
import tempfile
from pathlib import Path

from envs.habitat.simulator import SimulatorError

_MEMORY_FILES = Path("/dev/shm")  # where there are no anonymous ones


def share(size: int) -> int:
    """Returns the file descriptor of new memory of `size` bytes, all of it really there.

    Raises:
        SimulatorError: there is not as much.
    """
    try:
        descriptor = _anonymous_file()
    except OSError as error:
        raise SimulatorError(f"no shared memory can be had: {error.strerror}") from error
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        os.close(descriptor)
        raise SimulatorError(f"no {size:,} bytes of shared memory: {error.strerror}") from error
    return descriptor


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("cbet-views")
    folder = _MEMORY_FILES if _MEMORY_FILES.is_dir() else None
    with tempfile.TemporaryFile(dir=folder) as file:
        return os.dup(file.fileno())
