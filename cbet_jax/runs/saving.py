"""What a run saves, when, and what it continues from."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cbet_jax.config import RunSettings
from cbet_jax.runs import checkpoint, metrics_table, multihost
from cbet_jax.runs.checkpoint import Loaded, Position
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.settings_json import to_json
from cbet_jax.train import TrainState

SAVING_SHARE = 0.1  # of a run's time, at most: a chunk's end is saved if that allows it,
LONGEST_SECONDS = 600.0  # or after so long without a checkpoint


class Saver:
    """Saves the states of a run, and restores the newest one.

    Args:
        directory: of the run.
        settings: of the run.
        least_seconds: between two checkpoints, at least (None: as `SAVING_SHARE` says).
    """

    def __init__(
        self, directory: RunDirectory, settings: RunSettings, least_seconds: float | None
    ) -> None:
        self.saved = Position()  # of the newest checkpoint
        self._directory = directory
        self._folder = directory.checkpoints
        self._settings = to_json(settings)
        self._least_seconds = least_seconds
        self._saved_at = time.monotonic()
        self._save_seconds = 0.0  # that the last save took

    def restore(
        self, template: TrainState, say: Callable[[str], None]
    ) -> tuple[TrainState | None, Position]:
        """Read the newest good checkpoint; damaged ones that are newer are set aside.

        Args:
            template: a state of the run's shapes.
            say: prints a line.

        Returns:
            The state, None where there is no checkpoint, and its position.
        """
        loaded: Loaded[TrainState] | None = None

        def read() -> str | None:
            nonlocal loaded
            loaded = checkpoint.load_newest(self._folder, template, self._settings)
            if loaded is None:
                return None
            for path in loaded.damaged:
                aside = checkpoint.set_aside(path)
                say(
                    f"checkpoint {path} is damaged: set aside as {aside.name}, "
                    f"continuing from {loaded.path.name}"
                )
            self._restore_metrics(loaded, say)
            return str(loaded.path)

        path = multihost.on_first(read)
        if path is None:
            return None, Position()
        if loaded:
            state, self.saved = loaded.state, loaded.position
        else:  # the first host has read and verified it; this is another
            state, self.saved = checkpoint.load(Path(path), template, self._settings)
        return state, self.saved

    def held(self) -> list[int]:
        """Return the frames of the run's checkpoints."""
        return [int(path.name) for path in checkpoint.checkpoints(self._folder)]

    def restore_at(
        self, frames: int, template: TrainState, say: Callable[[str], None]
    ) -> tuple[TrainState | None, Position]:
        """Go back to the checkpoint at some frames (0: the beginning), and delete newer ones.

        Played again, the run has the same numbers as before.

        Args:
            frames: of the checkpoint.
            template: a state of the run's shapes.
            say: prints a line.

        Raises:
            RunDirectoryError: that checkpoint is damaged.
        """
        state: TrainState | None = None
        self.saved = Position()
        if frames:
            loaded = checkpoint.load_at(self._folder, frames, template, self._settings)
            state, self.saved = loaded.state, loaded.position
            self._restore_metrics(loaded, say)
        for path in checkpoint.checkpoints(self._folder):
            if int(path.name) > frames:
                shutil.rmtree(path)
        return state, self.saved

    def _restore_metrics(self, loaded: Loaded[TrainState], say: Callable[[str], None]) -> None:
        metrics_table.restore(
            self._directory.metrics,
            loaded.position.metrics_bytes,
            loaded.position.metrics_digest,
            loaded.path / checkpoint.METRICS,
            say,
        )

    def start_clock(self) -> None:
        """Count the time to the next checkpoint from here: the first chunk begins."""
        self._saved_at = time.monotonic()

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Take the block for all that a checkpoint costs, and count on from its end."""
        began = time.monotonic()
        yield
        self._saved_at = time.monotonic()
        self._save_seconds = self._saved_at - began

    def is_due(self) -> bool:
        """Return whether the last checkpoint is old enough on any host."""
        least = self._least_seconds
        if least is None:
            least = min(self._save_seconds / SAVING_SHARE, LONGEST_SECONDS)
        return bool(multihost.largest(time.monotonic() - self._saved_at >= least))

    def save(self, state: Any, position: Position) -> None:
        """Save a checkpoint, and the rows of metrics until then.

        Args:
            state: of the run, or its arrays by their names.
            position: how far the run has come.
        """
        checkpoint.save(
            self._folder, state, position, self._settings, metrics=self._directory.metrics
        )
        self.saved = position
