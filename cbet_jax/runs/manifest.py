"""What a run ran on: versions, devices, flags and speed, for each time it was started."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

from cbet_jax.runs.json_files import write_json

PACKAGES = ("jax", "jaxlib", "navix", "flax", "optax", "numpy", "orbax-checkpoint", "cbet-jax")


def describe(command: Sequence[str]) -> dict[str, Any]:
    """Returns the machine, the versions and the flags that this process runs with."""
    devices = jax.devices()
    return {
        "started": now(),
        "command": " ".join(command),
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "packages": {name: _version(name) for name in PACKAGES},
        "commit": _commit(),
        "backend": jax.default_backend(),
        "devices": [f"{device.platform}:{device.id} {device.device_kind}" for device in devices],
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "matmul_precision": jax.config.jax_default_matmul_precision or "default",
    }


def record(path: Path, session: dict[str, Any], *, first: bool) -> None:
    """Writes a session into the manifest: as a new one, or over the last one.

    Args:
        path: the manifest.
        session: what `describe` returned, and what has been measured since.
        first: whether this is the session's first record.
    """
    sessions = json.loads(path.read_text())["sessions"] if path.exists() else []
    write_json(path, {"sessions": [*(sessions if first else sessions[:-1]), session]})


def now() -> str:
    """Returns the time of day in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    here = Path(__file__).parent
    try:
        shown = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=here,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return shown.stdout.strip()
