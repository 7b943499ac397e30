"""What one of the runs of a program writes while it trains: checkpoints, metrics, its manifest."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from cbet_jax.config import RunSettings
from cbet_jax.learner import LearnerState
from cbet_jax.runs import manifest, metrics_table, multihost
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.checkpoint_arrays import OtherProgramError
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from cbet_jax.runs.metrics_table import Chunk
from cbet_jax.runs.saving import Saver
from cbet_jax.runs.tracking import Trackers
from cbet_jax.train import TrainState


class Run(NamedTuple):
    """One of the runs that a program trains."""

    directory: RunDirectory  # an unfinished run in it is continued
    settings: RunSettings  # which that run's configuration holds
    trackers: Trackers | None = None  # that follow the metrics
    command: tuple[str, ...] = ()  # that started it, for its manifest


class RunFiles:
    """What one of the runs of a program writes, and how far it has come."""

    def __init__(
        self,
        run: Run,
        first_agent: int,
        checkpoint_seconds: float | None,
        say: Callable[[str], None],
    ) -> None:
        self.directory, self.settings, self.trackers, command = run
        self.agents = slice(first_agent, first_agent + run.settings.seeds)  # of the program's
        self.saver = Saver(run.directory, run.settings, checkpoint_seconds)
        self.session = manifest.Session(run.directory.manifest, command, say)
        self.position = Position()
        self.trouble = ""  # one line, if the run has diverged
        self.table: metrics_table.Table | None = None

    def restore(
        self, template: TrainState, say: Callable[[str], None]
    ) -> tuple[TrainState | None, Position]:
        """Read the newest good checkpoint; None where the run has not begun.

        Raises:
            RunDirectoryError: it is another program's, or has no room for so many frames.
        """
        try:
            return self.saver.restore(template, say)
        except OtherProgramError as error:
            begun_with = self.directory.settings().train.frames
            if begun_with == self.settings.train.frames:
                raise
            raise RunDirectoryError(
                f"{self.directory.root} was begun with {begun_with:,} frames, and its count tables "
                f"have no room for {self.settings.train.frames:,} ({error.name}): begin a new run"
            ) from None

    def keep_settings(self) -> None:
        """Write the settings of a run that is made longer."""
        if self.directory.settings() != self.settings:
            self.directory.write_settings(self.settings)

    def write(self, chunk: Chunk, iterations: int, frames_per_iteration: int) -> None:
        """Write the run's part of a chunk's metrics."""
        own = {name: values[:, self.agents] for name, values in chunk.items()}
        before, length, digest = self.position, 0, None
        if self.table:
            length = self.table.append(own, before.frames, frames_per_iteration)
            digest = self.table.digest
            if self.trackers:
                self.trackers.log(own, before.frames, frames_per_iteration)
        done = before.iterations + iterations
        self.position = Position(done, done * frames_per_iteration, length, digest)
        updates = self.settings.train.updates  # in an iteration
        bad = own["first_bad_update"]  # index within its iteration; NaN: none
        if not np.isnan(bad).all():
            numbers = (before.iterations + np.arange(len(bad))[:, None]) * updates + bad + 1
            self._end(f"the loss of update {int(np.nanmin(numbers))} is not a finite number")

    def has_finite(self, learner: LearnerState) -> bool:
        """Return whether all that the run has learnt is finite numbers; it ends if it is not."""
        learnt = learner.policy, learner.intrinsic.learnt
        leaves = [multihost.fetch(leaf)[self.agents] for leaf in jax.tree.leaves(learnt)]
        if not all(np.isfinite(leaf).all() for leaf in leaves):
            last = self.position.iterations * self.settings.train.updates
            self._end(f"a parameter is not a finite number after update {last}")
        return not self.trouble

    def _end(self, trouble: str) -> None:
        frames = self.saver.saved.frames
        kept = f"is the one at {frames:,} frames" if frames else "is none"
        self.trouble = f"{trouble}; the last good checkpoint {kept}"
