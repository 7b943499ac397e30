"""The host's side of training: what happens between two chunks of the compiled program.

Nothing here decides what is computed. When a checkpoint is written depends on the clock, but where
the chunks begin and end does not. So a run that was killed and resumed ends with the same numbers,
bit for bit.

Where several hosts train together, all of them take these steps; only the first reads and writes
files (`cbet_jax.runs.multihost`).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console

from cbet_jax.config import RunSettings
from cbet_jax.runs import (
    compilation_cache,
    manifest,
    memory,
    metrics_table,
    multihost,
    progress_bar,
    saved_policies,
)
from cbet_jax.runs.checkpoint import OtherProgramError, Position
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from cbet_jax.runs.metrics_table import Chunk
from cbet_jax.runs.saving import Saver
from cbet_jax.runs.signals import Stop, heard_during, stop_on_signals
from cbet_jax.runs.tracking import Trackers
from cbet_jax.train import Program, TrainState, seed_keys

Advance = Callable[[TrainState], tuple[TrainState, Chunk]]  # plays a chunk; the state given is gone

LONG_SECONDS = 3600.0  # a run that takes longer says so after its first chunk
OVERFLOW_SHARE = 0.001  # of all visits, that find no room in count tables: more change the rewards


class NonFiniteLossError(Exception):
    """The loss is no longer a finite number; one line says since which update."""


class Outcome(NamedTuple):
    """How a run ended."""

    frames: int  # played so far by each seed
    finished: bool
    trained: bool  # False: there was nothing left to do
    signal: int  # what asked it to stop, or 0


@dataclass(frozen=True)
class HostSettings:
    """What the host does while the program computes; none of it changes the numbers."""

    console: Console
    command: tuple[str, ...] = ()  # for the manifest
    checkpoint_seconds: float | None = None  # between two, at least (None: saving.SAVING_SHARE)
    keep_at: tuple[int, ...] = ()  # frames at which the policies are kept for good
    trackers: Trackers | None = None  # that follow the metrics
    advice: str = ""  # what to do where the run takes long
    until: int | None = None  # frames to train for now (None: all); the run can be continued
    measured: Callable[[], dict[str, Any]] = dict  # what else the manifest records


def train(
    directory: RunDirectory, settings: RunSettings, program: Program, host: HostSettings
) -> Outcome:
    """Train until the last frame, or until a signal asks to stop.

    Args:
        directory: holds the run's configuration; an unfinished run in it is continued.
        settings: that configuration.
        program: the compiled program that the settings ask for.
        host: what to show, and how often to save.

    Returns:
        How far the run came, and why it ended.

    Raises:
        RunDirectoryError: the directory's files do not fit the settings.
        NonFiniteLossError: a loss was not a number; the last checkpoint is from before.
        SettingsError: the program needs more memory than there is.
    """
    with multihost.first_inside(directory.lock), stop_on_signals() as stop:
        run = _Run(directory, settings, program, host)
        multihost.on_first(lambda: directory.mend(settings, run.say))
        state, position = run.restore()
        start = position
        if position.iterations < run.last:
            run.keep_settings()
            advance, state = run.compile(state, stop)
            run.begin_tracking(position)
            with run.open_table(position), run.display(position):
                while position.iterations < run.last and not multihost.largest(stop.signal):
                    state, chunk = advance(state)
                    position = run.write(chunk, position)
                    run.refuse_non_finite_loss(chunk, position)
                    run.show(chunk, position)
                    run.keep_if_due(state, position)
                    run.save_if_due(state, position)
                run.save(state, position)
        finished = position.iterations >= run.iterations
        return Outcome(position.frames, finished, position != start, multihost.largest(stop.signal))


class _Run:
    """The steps that `train` is made of, and what they share."""

    def __init__(
        self,
        directory: RunDirectory,
        settings: RunSettings,
        program: Program,
        host: HostSettings,
    ) -> None:
        self.directory = directory
        self.settings = settings
        self.program = program
        self.host = host
        self.keys = seed_keys(settings.seeds, settings.first_seed)
        self.template = jax.eval_shape(program.init, self.keys)
        self.chunk_iterations = program.iterations_per_chunk
        self.chunk_frames = program.iterations_per_chunk * program.frames_per_iteration
        chunks = -(-settings.train.iterations // self.chunk_iterations)
        chunks_now = chunks if host.until is None else -(-host.until // self.chunk_frames)
        self.iterations = chunks * self.chunk_iterations  # of the whole run
        self.last = min(chunks, chunks_now) * self.chunk_iterations  # iteration to reach now
        self.saver = Saver(directory, settings, host.checkpoint_seconds)
        self.session = manifest.Session(directory.manifest, host.command, self.say)
        self.has_told_of_overflow = False
        self.has_told_of_time = False

    def restore(self) -> tuple[TrainState | None, Position]:
        """Read the newest good checkpoint; None where the run has not begun.

        Raises:
            RunDirectoryError: it is another program's, or has no room for so many frames.
        """
        try:
            return self.saver.restore(self.template, self.say)
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

        def write() -> None:
            if self.directory.settings() != self.settings:
                self.directory.write_settings(self.settings)

        multihost.on_first(write)

    def compile(self, state: TrainState | None, stop: Stop) -> tuple[Advance, TrainState]:
        """Compile the training step, and make the first state where there is none."""
        began = time.monotonic()
        stop.waits_for = "compiling"
        with (
            progress_bar.waiting(self.host.console, "compiling"),
            compilation_cache.kept(self.say),
        ):
            # Lowered from the template, so a resumed run compiles the very same program.
            compiled = heard_during(self.program.advance.lower(self.template).compile)
            memory.refuse_program(compiled)
            state = (
                self.program.init(self.keys) if state is None else self.program.to_devices(state)
            )
            state = jax.block_until_ready(state)
        stop.waits_for = ""
        seconds = time.monotonic() - began
        self.say(f"compiled in {seconds:.1f} s")
        self.record(compile_seconds=round(seconds, 2), from_frames=self.saver.saved.frames)

        def advance(state: TrainState) -> tuple[TrainState, Chunk]:
            state, metrics = compiled(state)
            return state, {name: np.asarray(values) for name, values in metrics.items()}

        return advance, state

    def begin_tracking(self, position: Position) -> None:
        """Open the trackers, on the first host."""
        if self.host.trackers and multihost.is_first():
            self.host.trackers.begin(position.frames)

    @contextmanager
    def open_table(self, position: Position) -> Iterator[None]:
        """Open the table of metrics, cut back to what it held at `position`."""

        def open_() -> AbstractContextManager[metrics_table.Table]:
            path, first_seed = self.directory.metrics, self.settings.first_seed
            return metrics_table.table(path, first_seed, position.metrics_bytes)

        with multihost.first_inside(open_) as self._table:
            yield

    @contextmanager
    def display(self, position: Position) -> Iterator[None]:
        """Show progress from `position` on."""
        total = self.last * self.program.frames_per_iteration
        self._speed = progress_bar.Speedometer(position.frames, total, self.settings.seeds)
        with progress_bar.display(self.host.console, self._speed) as self._display:
            self.saver.start_clock()
            yield

    def write(self, chunk: Chunk, position: Position) -> Position:
        """Write a chunk's metrics, and return the position after it."""
        length, digest = 0, None
        if self._table:
            length = self._table.append(chunk, position.frames, self.program.frames_per_iteration)
            digest = self._table.digest
            if self.host.trackers:
                each = self.program.frames_per_iteration
                self.host.trackers.log(chunk, position.frames, each)
        iterations = position.iterations + self.chunk_iterations
        frames = iterations * self.program.frames_per_iteration
        return Position(iterations, frames, length, digest)

    def refuse_non_finite_loss(self, chunk: Chunk, position: Position) -> None:
        """Stop the run at a loss that is not a finite number."""
        updates = self.settings.train.updates  # in an iteration
        bad = chunk["first_bad_update"]  # index within its iteration; NaN: none
        if not np.isnan(bad).all():
            before = (position.iterations - self.chunk_iterations) * updates
            numbers = before + np.arange(len(bad))[:, None] * updates + bad + 1
            raise self.non_finite(
                f"the loss of update {int(np.nanmin(numbers))} is not a finite number"
            )

    def refuse_non_finite_parameters(self, state: TrainState, position: Position) -> None:
        """Stop the run at a parameter that is not a finite number."""
        leaves = jax.tree.leaves(state.params)
        if not all(np.isfinite(multihost.fetch(leaf)).all() for leaf in leaves):
            last = position.iterations * self.settings.train.updates
            raise self.non_finite(f"a parameter is not a finite number after update {last}")

    def non_finite(self, trouble: str) -> NonFiniteLossError:
        frames = self.saver.saved.frames
        kept = f"is the one at {frames:,} frames" if frames else "is none"
        return NonFiniteLossError(f"{trouble}; the last good checkpoint {kept}")

    def show(self, chunk: Chunk, position: Position) -> None:
        """Show the speed and the main metrics; say once how long it takes, and of full tables."""
        self._display.update(position.frames, metrics_table.means(chunk))
        if not self.has_told_of_time and self._speed.seconds_left > LONG_SECONDS:
            hours = self._speed.seconds_left / 3600
            speed = f"{self._speed.frames_per_second:,.0f} frames/s"
            self.say(f"at {speed} this takes {hours:.1f} hours more{self.host.advice}")
        self.has_told_of_time = True
        overflow = np.max(chunk.get("count_overflow", 0))
        if not self.has_told_of_overflow and overflow > OVERFLOW_SHARE * position.frames:
            self.has_told_of_overflow = True
            self.say(
                f"the count tables are full: {overflow:,.0f} visits found no room, and were "
                "rewarded as first ones; a new run with more --counts.capacity has room"
            )

    def keep_if_due(self, state: TrainState, position: Position) -> None:
        """Keep the policies for good at the first chunk that reaches the frames asked for."""
        past = (position.frames - frames for frames in self.host.keep_at)
        if any(0 <= frames < self.chunk_frames for frames in past):
            self.refuse_non_finite_parameters(state, position)
            saved_policies.keep(self.directory, self.settings, state.learner.agent, position)

    def save_if_due(self, state: TrainState, position: Position) -> None:
        """Save a checkpoint if the last one is old enough."""
        if self.saver.is_due():
            self.save(state, position)

    def save(self, state: TrainState, position: Position) -> None:
        """Save a checkpoint, unless this very state was saved already.

        Raises:
            NonFiniteLossError: the state is no longer finite numbers, and is not saved.
        """
        if position == self.saver.saved:
            return
        with self.saver.timing():
            self.refuse_non_finite_parameters(state, position)
            if self._table:
                self._table.sync()
            self.saver.save(state, position)
            self.record(
                frames=position.frames,
                frames_per_second=round(self._speed.frames_per_second),
                last_checkpoint=manifest.now(),
                **self.host.measured(),
            )

    def record(self, **measured: Any) -> None:
        """Write what was measured into the manifest."""
        if multihost.is_first():
            self.session.record(**measured)

    def say(self, line: str) -> None:
        """Print one line."""
        self.host.console.print(line, soft_wrap=True, highlight=False)
