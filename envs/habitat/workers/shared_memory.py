"""Anonymous shared memory.

It has no name in any file system. The kernel frees it once no process has it open, however the
processes end.
"""

import os
import tempfile
from pathlib import Path

from envs.habitat.simulator import SimulatorError

_MEMORY_FILES = Path("/dev/shm")  # used if the system has no `memfd_create`


def share(size: int) -> int:
    """Allocate `size` bytes of shared memory and return their file descriptor.

    Raises:
        SimulatorError: there is not enough memory.
    """
    try:
        descriptor = _anonymous_file()
    except OSError as error:
        raise SimulatorError(f"no shared memory is available: {error.strerror}") from error
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
