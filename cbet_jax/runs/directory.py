"""The directory of a run: its configuration, its lock, and where everything lies.

config.json    the run's settings; written once, first of all
manifest.json  what it ran on, and how fast
metrics.csv    one long table
checkpoints/   the last few states of the whole program
policies/      those that were to be kept for good, without the rest of the program
figures/       learning curves
cache/         compiled programs
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
        """Makes the directory and writes the configuration.

        Raises:
            RunDirectoryError: something else lies there already.
        """
        if self.root.exists() and not self.root.is_dir():
            raise RunDirectoryError(f"{self.root} is a file, not a directory")
        self._refuse_occupied()
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            write_json(self.config, to_json(settings))
        except OSError as error:
            raise RunDirectoryError(f"cannot write to {self.root}: {error.strerror}") from None

    def _refuse_occupied(self) -> None:
        if self.config.exists():
            raise RunDirectoryError(
                f"{self.root} already holds a run: continue it with --resume, or choose another"
            )
        if self.root.exists() and any(not p.name.startswith(".") for p in self.root.iterdir()):
            raise RunDirectoryError(f"{self.root} is not empty and holds no run: choose another")

    def settings(self) -> RunSettings:
        """Reads the configuration that the run was started with.

        Raises:
            RunDirectoryError: there is none, or it cannot be read.
        """
        if not self.config.is_file():
            raise RunDirectoryError(f"{self.root} holds no run (no {self.config.name})")
        try:
            return from_json(RunSettings, json.loads(self.config.read_text()))
        except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise RunDirectoryError(f"{self.config} cannot be read: {reason}") from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps a second process out of the directory; the system drops it with the process.

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
