"""Estimate memory, and refuse runs that the system would kill silently."""

import os
import re
from pathlib import Path
from typing import Any

import jax

from cbet_jax.config import SettingsError

COMPILING_BYTES = 900 * 2**20  # compiling `smoke` on a CPU takes 964 MiB more than before
ADVICE = "ask for fewer --seeds or --worlds, or a smaller --counts.capacity"


def available(devices: int, root: Path = Path("/")) -> int:
    """Return the bytes of the devices' memory; on CPUs, those that this process can still take."""
    if limit := (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit"):
        return int(limit) * devices
    free = [int(kib) * 2**10 for kib in re.findall(r"MemAvailable: +(\d+)", _read(root, "meminfo"))]
    held = int((_read(root, "self/statm") or "0 0").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    for line in _read(root, "self/cgroup").splitlines():  # a container's limits, and those above it
        group = Path(line.split(":", 2)[2].lstrip("/"))
        for name in (group, *group.parents):
            for file in (f"{name}/memory.max", f"memory/{name}/memory.limit_in_bytes"):  # v2, v1
                text = _read(root, f"../sys/fs/cgroup/{file}").strip()
                free += [int(text) - held] if text.isdecimal() else []
    return max(min(free, default=2**60), 0) * jax.process_count()


def refuse_state(state: Any, devices: int) -> None:
    """Refuse (SettingsError) a run, before it is compiled, whose state (shapes) leaves no room."""
    kept = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    kept += COMPILING_BYTES if jax.default_backend() == "cpu" else 0
    _refuse("compiling and training take at least", kept, devices)


def refuse_program(compiled: Any) -> None:
    """Refuse (SettingsError) a run by its compiled program's memory (`jax.stages.Compiled`)."""
    if plan := compiled.memory_analysis():  # some compilers have none
        devices = len(jax.tree.leaves(compiled.input_shardings)[0].device_set)
        kept = plan.argument_size_in_bytes + plan.output_size_in_bytes - plan.alias_size_in_bytes
        _refuse("training takes", (kept + plan.temp_size_in_bytes) * devices, devices)


def _refuse(what: str, needed: int, devices: int) -> None:
    if needed > (there := available(devices)):
        sizes = f"{needed / 2**30:.1f} GiB, and {there / 2**30:.1f} GiB are free"
        raise SettingsError(f"{what} {sizes}: {ADVICE}")


def _read(root: Path, name: str) -> str:
    return path.read_text() if (path := root / "proc" / name).is_file() else ""  # not everywhere
