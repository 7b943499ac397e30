"""The files that a run reads and writes while it trains."""

import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from cbet_jax import own_code
from cbet_jax.config import RunSettings
from cbet_jax.runs import checkpoint, manifest, metrics_table, multihost
from cbet_jax.runs.atomic_write import set_aside
from cbet_jax.runs.checkpoint import Loaded, OtherProgramError, Position
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError, checkpoints, frames_of, path_at
from cbet_jax.runs.metrics_table import Chunk
from cbet_jax.runs.signals import interruptible
from cbet_jax.runs.task_record import EarlyEnd, TaskRecord
from cbet_jax.runs.tracking import Trackers
from cbet_jax.train import TrainState


class Run(NamedTuple):
    """One of the runs that a program trains."""

    directory: RunDirectory  # an unfinished run in it is continued
    settings: RunSettings  # those in the directory, or with more frames
    trackers: Trackers | None = None  # follow the metrics
    command: tuple[str, ...] = ()  # recorded in the manifest


class RunFiles:
    """The files and the position of one run; its agents are the program's from `first_agent` on."""

    def __init__(
        self, run: Run, first_agent: int, say: Callable[[str], None], early_end: EarlyEnd
    ) -> None:
        self.directory, self.settings, self.trackers, command = run
        self.agents = slice(first_agent, first_agent + run.settings.seeds)
        self.position = Position()
        self.saved = Position()  # position of the newest checkpoint
        self.trouble = ""  # how the run diverged, in one line, if it did
        self._session = manifest.Session(run.directory.manifest, command)
        self._table: metrics_table.Table | None = None
        seeds, train = run.settings.seeds, run.settings.train
        is_task = train.extrinsic_weight > 0
        self.task = TaskRecord(seeds, train.worlds, early_end) if is_task else None
        self._say = say

    def restore(self, template: TrainState) -> TrainState | None:
        """Read the newest good checkpoint, if there is one, and set damaged newer ones aside.

        Raises:
            RunDirectoryError: it belongs to another program, has no room for so many frames, its
                metrics are damaged, or all checkpoints are gone.
        """
        loaded: Loaded[TrainState] | None = None

        def read() -> str | None:
            nonlocal loaded
            self.directory.clean()
            load = partial(checkpoint.load, template=template)
            loaded = checkpoint.newest_good(self.directory.checkpoints, load)
            if loaded is None:
                manifest.refuse_lost_checkpoints(self.directory)
                return None
            self._session.refuse_other_surroundings()
            metrics_table.rows_until(self.directory.metrics, loaded.position)
            self._set_aside(loaded)
            return loaded.path.name

        try:
            name = multihost.on_first(read)
            if name is None:
                return None
            if loaded:
                state, self.saved = loaded.state, loaded.position
            else:  # another host: the first has checked it
                state, self.saved = checkpoint.load(self.directory.checkpoints / name, template)
        except OtherProgramError as error:
            begun_with = self.directory.settings().train.frames
            if begun_with == self.settings.train.frames:
                raise
            raise RunDirectoryError(
                f"{self.directory.root} was begun with {begun_with:,} frames, and its count tables "
                f"have no room for {self.settings.train.frames:,} ({error.name}): begin a new run"
            ) from None
        self.position = self.saved
        return state

    def checkpoint_frames(self) -> set[int]:
        """Return the frames of the run's checkpoints."""
        return set(map(frames_of, checkpoints(self.directory.checkpoints)))

    def go_back(self, frames: int, template: TrainState) -> TrainState | None:
        """Go back to the checkpoint at some frames (0: the beginning), and delete newer ones.

        Played again, the run has the same numbers as before.

        Raises:
            RunDirectoryError: that checkpoint is damaged.
        """
        state, self.saved = None, Position()
        if frames:
            path = path_at(self.directory.checkpoints, frames)
            state, self.saved = checkpoint.load(path, template)
        self.record(from_frames=frames)  # before a kill may leave no checkpoint
        for path in checkpoints(self.directory.checkpoints):
            if frames_of(path) > frames:
                shutil.rmtree(path)
        self.position = self.saved
        return state

    def restore_task(self) -> None:
        """Read what the run's task record was at its position.

        Raises:
            RunDirectoryError: a file is damaged.
        """
        if self.task and self.position.iterations:
            files = self.directory.best, self.directory.metrics
            if best := self.task.restore(*files, self.position, self.settings.chunk):
                multihost.on_first(partial(self._set_aside, best))

    def _set_aside(self, loaded: Loaded[Any]) -> None:
        """Set aside what was damaged, and say so; a new save may need its name."""
        for path in loaded.damaged:
            aside = set_aside(path).name
            self._say(
                f"checkpoint {path} is damaged: set aside as {aside}, "
                f"continuing from {loaded.path.name}"
            )

    def begin(self) -> None:
        """Write the settings of a lengthened run, and open its trackers."""
        if self.directory.settings() != self.settings:
            with self.directory.held() as here:
                here.write_settings(self.settings)
        if self.trackers:
            self.trackers.begin(self.position.frames)

    @contextmanager
    def open_table(self) -> Iterator[None]:
        """Open the table of metrics on the first host, cut back to the run's position."""
        path, first_seed = self.directory.metrics, self.settings.first_seed
        open_ = partial(metrics_table.table, path, first_seed, self.position)
        with multihost.first_inside(open_) as self._table:
            yield

    def write(self, chunk: Chunk, iterations: int, frames_per_iteration: int) -> None:
        """Write the run's part of a chunk's metrics; a loss of NaN or infinity ends the run."""
        own = {name: values[:, self.agents] for name, values in chunk.items()}
        before, length, digest = self.position, 0, ""
        if self._table:
            length = self._table.append(own, before.frames, frames_per_iteration)
            digest = self._table.digest
            if self.trackers:
                self.trackers.log(own, before.frames, frames_per_iteration)
        if self.task:
            self._better = self.task.add(before.frames + iterations * frames_per_iteration, own)
        done = before.iterations + iterations
        self.position = Position(done, done * frames_per_iteration, length, digest)
        updates = self.settings.train.updates  # updates in an iteration
        bad = own["first_bad_update"]  # index within its iteration; NaN: none
        if not np.isnan(bad).all():
            numbers = (before.iterations + np.arange(len(bad))[:, None]) * updates + bad + 1
            self._end(f"the loss of update {int(np.nanmin(numbers))} is not a finite number")

    def has_finite(self, learner: Any) -> bool:
        """Return whether all learnt parameters are finite; end the run if not."""
        learnt = learner.policy, learner.intrinsic.learnt
        leaves = [multihost.fetch(leaf)[self.agents] for leaf in jax.tree.leaves(learnt)]
        if not all(np.isfinite(leaf).all() for leaf in leaves):
            last = self.position.iterations * self.settings.train.updates
            self._end(f"a parameter is not a finite number after update {last}")
        return not self.trouble

    @property
    def ending(self) -> str:
        """Why the run ends before its last frame ('': it does not)."""
        return self.task.ending if self.task else ""

    def is_best(self) -> bool:
        """Return whether a seed plays its task at least as well as ever."""
        return bool(self.task and self._better.any())

    def keep_best(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep the policies among the program's arrays of those seeds."""
        if self.task:
            self.task.keep(self._better, self._own(arrays))

    def save(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Save the run's part of the state, after flushing its metrics and trackers."""
        multihost.on_first(self._check)
        own = self._own(arrays)
        with self.directory.held() as here:
            if self.task:  # before the checkpoint, so that no kill leaves them behind
                self.task.save(here.best)
            interruptible(lambda: checkpoint.save(here.checkpoints, own, self.position))
        self.saved = self.position

    def keep_policies(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Save the policies among the program's arrays for good."""
        multihost.on_first(self._check)
        with self.directory.held() as here:
            checkpoint.save_new(here.policies, self._own(arrays), self.position, kept=None)

    def _own(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: array[self.agents] for name, array in arrays.items()}

    def _check(self) -> None:
        if self._table:
            self._table.sync()
            if self.trackers:
                self.trackers.flush()
        self.directory.check_lock()

    def record(self, **measured: Any) -> None:
        """Record measurements in the manifest, on the first host."""
        if multihost.is_first():
            self.directory.check_lock()
            with self.directory.held() as here:
                measured["ended"] = self.ending
                if self.task:
                    measured["early_end"] = asdict(self.task.early_end)
                self._session.record(here.manifest, **measured)

    def record_early_end(self) -> None:
        """Record how the run has ended early, unless that is recorded."""
        if not (self.task and self.ending):
            return
        last = manifest.last_session(self.directory.manifest)
        how = self.ending, asdict(self.task.early_end)
        if (last.get("ended"), last.get("early_end")) != how:
            kept = {name: last[name] for name in manifest.NUMBERS & last.keys()}
            self.record(from_frames=self.saved.frames, **kept)

    def _end(self, trouble: str) -> None:
        frames = self.saved.frames
        kept = f"the last good checkpoint is at {frames:,} frames" if frames else "nothing is saved"
        method, own = own_code.given(self.settings.train.method), self.settings.train.own
        words = ["cbet", "check-method", method, *(["--own", *own] if own else [])]
        why = f"; {shlex.join(words)} may say why" if own_code.is_own(method) else ""
        self.trouble = f"{trouble}; {kept}{why}"
        self.record(diverged=self.trouble)
