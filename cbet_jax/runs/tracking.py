"""Trackers: services that show metrics while a run trains, such as TensorBoard.

A tracker follows one seed of a run, under the names of `metrics.csv`. It is a small class
(`Tracker`) and a line of `TRACKERS`; aim or mlflow can be added so. One that fails is left out
from then on: it never ends a run.
"""

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.metrics import HIDDEN


@runtime_checkable
class Tracker(Protocol):
    """Follows one seed of a run.

    It is made from the run's directory, its settings, the seed, and the frames that the run is
    continued from: what was tracked after those is tracked again.
    """

    def __init__(
        self, directory: RunDirectory, settings: RunSettings, seed: int, frames: int
    ) -> None: ...

    def log(self, frames: int, values: Mapping[str, float]) -> None:
        """Record metrics, by their names in `metrics.csv`, after so many frames."""

    def show(self, frames: int, name: str, picture: Path) -> None:
        """Record a picture or a film (PNG or GIF) under a name."""

    def close(self) -> None:
        """Bring all of it to the disk, or to the service."""


# Name on the command line (also the extra that installs it) -> module, which defines `make`.
TRACKERS = {
    "tensorboard": "cbet_jax.runs.tracking_tensorboard",
    "wandb": "cbet_jax.runs.tracking_wandb",
}
NEEDED = {"tensorboard": "tensorboardX", "wandb": "wandb"}  # packages


class Trackers:
    """All trackers of all seeds of a run, none of which can end it.

    Args:
        names: of the trackers.
        directory: of the run.
        settings: of the run.
        say: prints a line.

    Raises:
        SettingsError: a tracker's package is not installed.
    """

    def __init__(
        self,
        names: Sequence[str],
        directory: RunDirectory,
        settings: RunSettings,
        say: Callable[[str], None],
    ) -> None:
        self._names = names
        self._directory = directory
        self._settings = settings
        self._say = say
        self._open: dict[tuple[str, int], Tracker] = {}
        self._frames = 0

    def begin(self, frames: int) -> None:
        """Open all trackers of a run that is continued from so many frames."""
        self._frames = frames
        seeds = range(self._settings.seeds)
        wanted = [
            (name, self._settings.first_seed + seed) for name in self._names for seed in seeds
        ]
        for name, seed in wanted:
            if name in self._names:  # it has not failed
                self._try(name, partial(self._make, name, seed, frames))

    def log(self, chunk: Mapping[str, np.ndarray], frames: int, frames_per_iteration: int) -> None:
        """Record a chunk of metrics.

        Args:
            chunk: name -> float32[iterations, seeds]; NaN: there is no data.
            frames: played by each seed before the chunk.
            frames_per_iteration: played by each seed in one iteration.
        """
        shown = {name: values for name, values in chunk.items() if name not in HIDDEN}
        length = len(next(iter(chunk.values())))
        self._frames = frames + length * frames_per_iteration
        for name, seed in list(self._open):
            column = seed - self._settings.first_seed
            for row in range(length):
                values = {key: float(value[row, column]) for key, value in shown.items()}
                there = {key: value for key, value in values.items() if not np.isnan(value)}
                at = frames + (row + 1) * frames_per_iteration
                self._ask(name, seed, "log", at, there)

    def show(self, name: str, picture: Path) -> None:
        """Record a picture or a film with each seed."""
        for tracker, seed in list(self._open):
            self._ask(tracker, seed, "show", self._frames, name, picture)

    def close(self) -> None:
        """Close all trackers."""
        for name, seed in list(self._open):
            self._ask(name, seed, "close")
        self._open.clear()

    def _make(self, name: str, seed: int, frames: int) -> None:
        make = importlib.import_module(TRACKERS[name]).make
        self._open[name, seed] = make(self._directory, self._settings, seed, frames)

    def _ask(self, name: str, seed: int, method: str, *arguments: Any) -> None:
        """Call a method of a tracker, unless its service has failed before."""
        if (name, seed) in self._open:
            self._try(name, lambda: getattr(self._open[name, seed], method)(*arguments))

    def _try(self, name: str, work: Callable[[], Any]) -> None:
        """Do something with a tracker; if it fails, say so and leave the tracker out."""
        try:
            work()
        except Exception as error:  # whatever a service raises: the run matters more
            self._names = tuple(other for other in self._names if other != name)
            self._open = {key: kept for key, kept in self._open.items() if key[0] != name}
            reason = " ".join(str(error).split()) or type(error).__name__
            self._say(f"{name} has failed and is left out: {reason}")


def check_installed(names: Sequence[str]) -> None:
    """Refuse trackers whose packages are not installed.

    Raises:
        SettingsError: a package is missing.
    """
    for name in names:
        if importlib.util.find_spec(NEEDED[name]) is None:
            raise SettingsError(
                f"--track {name} needs a package: `uv sync --extra {name}`, or "
                f"`pip install 'cbet-jax[{name}]'`"
            )
