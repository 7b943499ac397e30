"""The directory of a run: its configuration, its lock, and the path of each file.

config.json    the run's settings; written once, first of all
manifest.json  what it ran on, and how fast
metrics.csv    one long table
checkpoints/   the last few states of the whole program
policies/      policies kept for good, without the rest of the program
figures/       learning curves
cache/         compiled programs
.lock          keeps other processes out

Evaluations and `watch` write their tables, pictures and films beside these.
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cbet_jax.config import RunSettings
from cbet_jax.runs.json_files import from_json, to_json, write_json


class RunDirectoryError(Exception):
    """A run directory that cannot be used as asked, with one line that says why."""


class RunDirectory:
    """Paths inside one run directory."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self.config = self.root / "config.json"
        self.manifest = self.root / "manifest.json"
        self.metrics = self.root / "metrics.csv"
        self.checkpoints = self.root / "checkpoints"
        self.policies = self.root / "policies"
        self.figures = self.root / "figures"
        self.cache = self.root / "cache"

    def create(self, settings: RunSettings) -> None:
        """Make the directory and write the configuration.

        Raises:
            RunDirectoryError: something else is there already.
        """
        if self.config.exists():
            raise RunDirectoryError(
                f"{self.root} already holds a run: continue it with --resume, or choose another"
            )
        create_with_record(self.config, "run", to_json(settings))

    def settings(self) -> RunSettings:
        """Read the configuration that the run was started with.

        Raises:
            RunDirectoryError: there is none, or it cannot be read.
        """
        if not self.config.is_file():
            raise holds_no("run", self.config)
        try:
            return from_json(RunSettings, json.loads(self.config.read_text()))
        except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise RunDirectoryError(f"{self.config} cannot be read: {reason}") from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from training in the directory.

        The system drops the lock with the process, even one that is killed. (`filelock` wraps the
        same call; its timeouts, re-entrance and other systems are not needed here.)

        Raises:
            RunDirectoryError: another process is training in it.
        """
        with open(self.root / ".lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunDirectoryError(
                    f"{self.root} is in use by another process that is training in it"
                ) from None
            yield


def create_with_record(record: Path, kind: str, content: dict[str, Any]) -> None:
    """Make a folder, and write the file that says what the folder holds.

    Args:
        record: the file.
        kind: of what the folder holds: "run", "study" or "sweep".
        content: of the file, as JSON.

    Raises:
        RunDirectoryError: something else is there already, or nothing can be written.
    """
    refuse_other_content(record, kind)
    write_record(record, content)


def write_record(record: Path, content: dict[str, Any]) -> None:
    """Write the file that says what a folder holds, and make the folder if it is not there.

    Raises:
        RunDirectoryError: nothing can be written.
    """
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        write_json(record, content)
    except OSError as error:
        raise RunDirectoryError(f"cannot write to {record.parent}: {error.strerror}") from None


def refuse_other_content(record: Path, kind: str) -> None:
    """Refuse a folder that is in use for something else.

    Args:
        record: the file that says what the folder holds.
        kind: of what it should hold.

    Raises:
        RunDirectoryError: the folder is a file, or holds files but not this one.
    """
    root = record.parent
    if root.exists() and not root.is_dir():
        raise RunDirectoryError(f"{root} is a file, not a directory")
    if root.exists() and not record.exists() and not is_empty(root):
        raise RunDirectoryError(f"{root} is not empty and holds no {kind}: choose another")


def is_empty(folder: Path) -> bool:
    """Return whether a folder holds no files but hidden ones."""
    return all(path.name.startswith(".") for path in folder.iterdir())


def holds_no(kind: str, record: Path) -> RunDirectoryError:
    """Return the error that a folder lacks the file that says what it holds."""
    return RunDirectoryError(f"{record.parent} holds no {kind} (no {record.name})")
