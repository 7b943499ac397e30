"""The manifest of a run: versions, devices, flags and speed of each start."""

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cbet_jax.runs.directory import RunDirectory, RunDirectoryError, checkpoints
from cbet_jax.runs.reading import read_json, reading, write_with_digest
from cbet_jax.settings.as_json import flattened

PACKAGES = ("jax", "jaxlib", "navix", "flax", "optax", "numpy", "cbet-jax")
GIT_TIMEOUT_SECONDS = 10
NUMBERS = {"frames", "frames_per_second"}  # measurements that reports reckon with
SURROUNDINGS = (  # settings of JAX that change a run's numbers
    *("jax_accurate_erf_inv", "jax_allow_f16_reductions", "jax_default_matmul_precision"),
    *("jax_default_prng_impl", "jax_disable_most_optimizations", "jax_high_dynamic_range_gumbel"),
    *("jax_optimization_level", "jax_random_seed_offset", "jax_softmax_custom_jvp"),
    *("jax_threefry_partitionable", "jax_use_hlo_logistic_lowering"),
)
#: beginnings of XLA's flags that change no numbers, or (the first) only the order of sums
HARMLESS = ("--xla_force_host_platform_device_count", "--xla_cpu_collective", "--xla_dump")


class Session:
    """One start of a run, with its measurements."""

    def __init__(self, path: Path, command: Sequence[str]) -> None:
        self._path = path
        self._entry = describe(command)
        self._earlier: list[dict[str, Any]] | None = None

    def refuse_other_surroundings(self) -> None:
        """Refuse to continue a run where JAX or XLA would compute other numbers.

        Raises:
            RunDirectoryError: earlier sessions had another setting, or cannot be read.
        """
        for session in map(flattened, sessions(self._path)):
            for name, now in self._entry["numbers"].items():
                if (before := session.get(f"numbers.{name}", now)) != now:
                    begun = f"{self._path.parent} was begun with {name}={before}"
                    raise RunDirectoryError(f"{begun}, not {now!r}: its numbers would change")

    def record(self, path: Path, **measured: Any) -> None:
        """Add measurements to the session, and write it into the manifest at a path.

        Raises:
            UnreadableError: the manifest of earlier sessions cannot be read.
        """
        if self._earlier is None:
            self._earlier = sessions(self._path)
        self._entry |= measured
        write_with_digest(path, {"sessions": [*self._earlier, self._entry]})


def sessions(path: Path) -> list[dict[str, Any]]:
    """Return the starts that a manifest describes, none if there is no manifest.

    Raises:
        UnreadableError: it is damaged.
    """
    if not os.path.lexists(path):
        return []
    with reading(path):
        found: list[dict[str, Any]] = list(read_json(path)["sessions"])
        for session in found:
            entries = flattened(session)
            for name in NUMBERS & entries.keys():
                if not isinstance(entries[name], int | float):
                    raise ValueError(f"{name} is no number")
        return found


def last_session(path: Path) -> dict[str, Any]:
    """Return the last start that a manifest describes, empty if there is none."""
    return (sessions(path) or [{}])[-1]


def refuse_lost_checkpoints(directory: RunDirectory) -> None:
    """Refuse to begin a run anew that had a checkpoint, or lost its manifest, too.

    Raises:
        RunDirectoryError: it is such a run.
    """
    last = last_session(directory.manifest)
    # A manifest is written before these.
    is_left = not last and (directory.metrics.exists() or checkpoints(directory.policies))
    if "last_checkpoint" in last or last.get("from_frames") or is_left:
        raise RunDirectoryError(f"{directory.root} has lost its checkpoints: begin a new run")


def ending(path: Path) -> str:
    """Return why a run ended before its last frame ('': it did not, or there is no manifest)."""
    return str(last_session(path).get("ended", ""))


def diverged(path: Path) -> str:
    """Return how a run diverged ('': it did not, or there is no manifest)."""
    return str(last_session(path).get("diverged", ""))


def describe(command: Sequence[str]) -> dict[str, Any]:
    """Return the machine, versions and flags of this process."""
    import jax  # imported here: it takes seconds

    devices, flags = jax.devices(), os.environ.get("XLA_FLAGS", "").split()
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
        "xla_flags": " ".join(flags),
        "numbers": {
            **{name.upper(): str(getattr(jax.config, name, None)) for name in SURROUNDINGS},
            "XLA_FLAGS": " ".join(sorted(x for x in flags if not x.startswith(HARMLESS))),
        },
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
    """Return the commit of the package's repository (None: installed without one)."""
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
