"""What a run ran on: versions, devices, flags and speed, for each time it was started."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

from cbet_jax.runs.atomic_write import set_aside, write_json
from cbet_jax.runs.checkpoint_record import digest_of_record, read_own

PACKAGES = ("jax", "jaxlib", "navix", "flax", "optax", "numpy", "orbax-checkpoint", "cbet-jax")
GIT_TIMEOUT_SECONDS = 10
DIGEST = "digest"  # of all else in the file


class Session:
    """One start of a run: what it ran on, and what was measured since.

    Args:
        path: the run's manifest, which holds all of its sessions.
        command: the words of the command line.
        say: prints a line.
    """

    def __init__(
        self, path: Path, command: Sequence[str], say: Callable[[str], None] = print
    ) -> None:
        self._path = path
        self._say = say
        self._entry = describe(command)
        self._is_recorded = False

    def record(self, **measured: Any) -> None:
        """Write the session, with more that was measured, into the manifest."""
        self._entry |= measured
        if measured.get("from_frames") and not self._path.exists():
            self._say(f"{self._path} is missing: a new one begins")
        earlier = self._earlier()
        kept = earlier[:-1] if self._is_recorded else earlier  # the last one is this session
        content = {"sessions": [*kept, self._entry]}
        write_json(self._path, {**content, DIGEST: digest_of_record(content)})
        self._is_recorded = True

    def _earlier(self) -> list[dict[str, Any]]:
        """Return the sessions until now; a damaged manifest is set aside."""
        if not self._path.exists():
            return []
        try:
            content = json.loads(read_own(self._path))
            digest = content.pop(DIGEST, None)  # older runs have none
            if digest is not None and digest != digest_of_record(content):
                raise ValueError("it is not what was written")
            sessions = content["sessions"]
            if not isinstance(sessions, list):
                raise TypeError(type(sessions))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            aside = set_aside(self._path)
            self._say(f"{self._path} is damaged: set aside as {aside.name}, a new one begins")
            return []
        return sessions


def describe(command: Sequence[str]) -> dict[str, Any]:
    """Return the machine, the versions and the flags that this process runs with."""
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


def now() -> str:
    """Return the date and time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Return the commit of this package's own repository; None where it is installed without."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():  # git would answer for a repository around it
        return None
    try:
        shown = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
            timeout=GIT_TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return shown.stdout.strip()
