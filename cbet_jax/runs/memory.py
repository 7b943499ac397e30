"""The memory that a program needs and that there is, to refuse what would be killed without a word.

Not all that the machine has is there: other processes hold some, and a container has a limit of its
own (cgroup). A process that takes more is killed.
"""

import os
from pathlib import Path
from typing import Any

import jax

from cbet_jax.config import SettingsError


class NotEnoughMemoryError(SettingsError):
    """Settings that need more memory than there is."""


GIB = 2**30  # bytes
#: that compiling a run takes beside what the process holds before (`smoke`: 964 MiB)
COMPILING_BYTES = 900 * 2**20
ADVICE = "ask for fewer --seeds or --worlds, or a smaller --counts.capacity"
NO_LIMIT = 2**60  # cgroup v1 says so with such a number


def available(devices: int, root: Path = Path("/")) -> int:
    """Return the bytes of memory of a number of devices.

    On a CPU: what the machine has free, or what this process has left of its container's limit,
    whichever is less.

    Args:
        devices: how many.
        root: of the file system that tells the container's limit.
    """
    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return int(stats["bytes_limit"]) * devices
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    left = min([machine, *container_limits(root)]) - held(root)
    return max(min(left, free(root)), 0) * jax.process_count()


def free(root: Path = Path("/")) -> int:
    """Return the bytes of memory that the machine could still give to a process."""
    for line in _read(root / "proc/meminfo").splitlines():
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            return int(amount.split()[0]) * 2**10
    return NO_LIMIT  # not Linux


def held(root: Path = Path("/")) -> int:
    """Return the bytes of memory that this process holds."""
    try:
        pages = int((root / "proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):  # not Linux
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def container_limits(root: Path = Path("/")) -> list[int]:
    """Return the limits of the control groups that this process is in, those above them included.

    Args:
        root: of the file system.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # not Linux
        return []
    limits = []
    for line in lines:
        _, controllers, place = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base = root / "sys/fs/cgroup" / ("memory" if controllers else "")
        file = "memory.limit_in_bytes" if controllers else "memory.max"
        inside = Path(place.lstrip("/"))
        # In a container only its own part may be there, without the path that the host sees.
        for folder in (inside, *inside.parents):
            text = _read(base / folder / file)
            if text.isdecimal() and int(text) < NO_LIMIT:
                limits.append(int(text))
    return limits


def refuse_state(state: Any, devices: int) -> None:
    """Refuse a run whose state alone does not fit, before it is compiled.

    Args:
        state: a tree of shapes.
        devices: that it is laid out over.

    Raises:
        NotEnoughMemoryError: it does not.
    """
    kept = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    _refuse("training keeps", kept, devices)
    if jax.local_devices()[0].platform == "cpu" and not jax.local_devices()[0].memory_stats():
        _refuse("compiling and training take at least", kept + COMPILING_BYTES, devices)


def refuse_program(compiled: Any) -> None:
    """Refuse a compiled program (`jax.stages.Compiled`) by its own plan of memory.

    Raises:
        NotEnoughMemoryError: that is more than there is.
    """
    plan = compiled.memory_analysis()
    if plan is None:  # this compiler has none
        return
    devices = len(jax.tree.leaves(compiled.input_shardings)[0].device_set)
    inputs = plan.argument_size_in_bytes + plan.output_size_in_bytes - plan.alias_size_in_bytes
    needed = (inputs + plan.temp_size_in_bytes) * devices
    _refuse("training takes", needed, devices)


def _refuse(what: str, needed: int, devices: int) -> None:
    there = available(devices)
    if needed > there:
        raise NotEnoughMemoryError(
            f"{what} {needed / GIB:.1f} GiB, and {there / GIB:.1f} GiB are free: {ADVICE}"
        )


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
