"""The directory of a run: its configuration, its lock, and where everything lies.

config.json    the run's settings; written once, first of all
manifest.json  what it ran on, and how fast
metrics.csv    one long table
checkpoints/   the last few states of the whole program
policies/      those that were to be kept for good, without the rest of the program
figures/       learning curves
cache/         compiled programs
"""

import dataclasses
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from cbet_jax.config import HabitatSettings, SettingsError, TrainSettings, TransferSettings


class RunDirectoryError(Exception):
    """A run directory that cannot be used as asked, with one line that says why."""


@dataclass(frozen=True)
class RunSettings:
    """All that decides what a run computes: equal settings give equal numbers."""

    train: TrainSettings = field(default_factory=TrainSettings)
    environments: tuple[str, ...] = ("MultiRoom-N4-S5", "KeyCorridorS3R3", "BlockedUnlockPickup")
    seeds: int = 1  # trained side by side in one compiled program
    first_seed: int = 0  # the seeds are first_seed, first_seed + 1, ...
    chunk: int = 5  # iterations between two looks of the host
    explore: bool = True  # there is no task: success does not end an episode
    transfer: TransferSettings | None = None  # what biases the policy, if anything does
    habitat: HabitatSettings | None = None  # how the environments are played, if they are scenes of
    # rooms; None: they are gridworlds

    def __post_init__(self) -> None:
        for name in ("seeds", "chunk"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.first_seed < 0:
            raise SettingsError(f"first_seed must be at least 0, not {self.first_seed}")
        if not self.environments:
            raise SettingsError("envs must name at least one environment")

    @property
    def stage(self) -> str:
        """What people call such a run."""
        task = "transfer" if self.transfer else "tabula rasa"
        stage = "pre-training" if self.explore else task
        return f"{stage} in Habitat" if self.habitat else stage


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


def to_json(settings: RunSettings) -> dict[str, Any]:
    """Returns the settings as nested dictionaries, lists, numbers and strings."""
    nested: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(settings)))
    return nested


def from_json[T](kind: type[T], nested: dict[str, Any]) -> T:
    """Returns the dataclass that `to_json` made `nested` from.

    What may be null may be missing, so that runs from before there was such a field stay readable.

    Raises:
        KeyError: a field is missing. TypeError: a field is unknown.
    """
    unknown = sorted(set(nested) - {f.name for f in dataclasses.fields(kind)})  # type: ignore[arg-type]
    if unknown:
        raise TypeError(f"unknown field {unknown[0]}")
    values = {}
    for item in dataclasses.fields(kind):  # type: ignore[arg-type]
        inners = get_args(item.type) or (item.type,)  # `X | None` is X where it is not null
        value = nested.get(item.name) if type(None) in inners else nested[item.name]
        for inner in inners:
            if dataclasses.is_dataclass(inner) and isinstance(inner, type) and value is not None:
                value = from_json(inner, value)
        values[item.name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def first_difference(one: Any, other: Any, name: str = "") -> str | None:
    """Names the first field in which two nested dictionaries differ, with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(k for k in other if k not in one)]:
            inner = f"{name}.{key}" if name else key
            found = first_difference(one.get(key), other.get(key), inner)
            if found:
                return found
        return None
    return None if one == other else f"{name} is {_shown(one)}, not {_shown(other)}"


def _shown(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def write_json(path: Path, content: Any) -> None:
    """Writes a file that is either complete or absent, whenever the process dies."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a place to write a file to, which takes its own when the block ends well.

    So the file is either complete or as it was (or absent), whenever the process dies.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)  # of a process that was killed
    yield temporary
    os.replace(temporary, path)
