"""The host's side of training: what happens between two chunks of the compiled program.

Nothing here decides what is computed. How often a checkpoint is written depends on the
clock, but where the chunks begin and end does not, so a run that was killed and resumed
finishes with the same numbers, bit for bit.

Where several hosts train together, all of them go through these steps; the first alone reads
and writes files (`cbet_jax.runs.multihost`).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import jax
import numpy as np
from rich.console import Console

from cbet_jax.analysis import figures
from cbet_jax.config import RunSettings
from cbet_jax.runs import (
    checkpoint,
    compilation_cache,
    manifest,
    metrics_table,
    multihost,
    progress_bar,
    saved_policies,
)
from cbet_jax.runs.checkpoint import Loaded, Position
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.json_files import to_json
from cbet_jax.runs.signals import stop_on_signals
from cbet_jax.train import Program, seed_keys

SAVING_SHARE = 0.1  # of the time, at most: a chunk's end is saved if it keeps to that,
LONGEST = 600.0  # or after so many seconds
OVERFLOW_SHARE = 0.001  # of all visits that find no room in count tables: more change the rewards


class NonFiniteLossError(Exception):
    """The loss is no longer a number; one line says since which update."""


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
    checkpoint_seconds: float | None = None  # at least, between two (None: SAVING_SHARE says)
    keep_at: tuple[int, ...] = ()  # frames at which the policies are kept for good
    until: int | None = None  # frames that are trained for now (None: all); the run can go on
    measured: Callable[[], dict[str, Any]] = dict  # what the manifest is to hold beside the speed


def train(
    directory: RunDirectory, settings: RunSettings, program: Program, host: HostSettings
) -> Outcome:
    """Trains until the last frame, or until it is asked to stop.

    Args:
        directory: holds the run's configuration; an unfinished run in it is continued.
        settings: that configuration.
        program: the compiled program that the settings ask for.
        host: what to show, and how often to save.

    Returns:
        How far it came, and why it ended.

    Raises:
        RunDirectoryError: what lies in the directory does not fit the settings.
        NonFiniteLossError: a loss was not a number; the last checkpoint is from before.
    """
    with multihost.first_inside(directory.lock), stop_on_signals() as stop:
        run = _Run(directory, settings, program, host)
        state, position = start = run.restore()
        if position.iterations < run.last:
            state = run.compile(state)
            with run.open_table(position), run.display(position):
                while position.iterations < run.last and not multihost.largest(stop.signal):
                    state, chunk = run.advance(state)
                    position = run.write(chunk, position)
                    run.refuse_non_finite(chunk, position)
                    run.show(chunk, position)
                    run.keep_if_due(state, position)
                    run.save_if_due(state, position)
                run.save(state, position)
        finished = position.iterations >= run.iterations
        if finished:
            multihost.on_first(
                lambda: figures.draw_learning_curves(directory.metrics, directory.figures)
            )
        signal = multihost.largest(stop.signal)
        return Outcome(position.frames, finished, position != start[1], signal)


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
        chunks = -(-settings.train.iterations // program.iterations_per_chunk)
        self.iterations = self.last = chunks * program.iterations_per_chunk
        if host.until is not None:
            now = -(-host.until // (program.iterations_per_chunk * program.frames_per_iteration))
            self.last = min(chunks, now) * program.iterations_per_chunk
        self.manifest = manifest.describe(host.command)
        self.saved = Position()
        self._told_of_overflow = False

    def restore(self) -> tuple[Any, Position]:
        """Reads the newest good checkpoint; without one the run begins at its beginning."""
        loaded: Loaded | None = None

        def read() -> Path | None:
            nonlocal loaded
            loaded = self._load_newest()
            return loaded.path if loaded else None

        path = multihost.on_first(read)
        if path is None:
            return None, Position()
        if loaded:
            state, self.saved = loaded.state, loaded.position
        else:  # the first host has read and checked it; this is another
            state, self.saved = checkpoint.load(path, self.template, to_json(self.settings))
        return state, self.saved

    def _load_newest(self) -> Loaded | None:
        folder = self.directory.checkpoints
        loaded = checkpoint.load_newest(folder, self.template, to_json(self.settings))
        if loaded is None:
            return None
        for path in loaded.damaged:
            aside = checkpoint.set_aside(path)
            self._say(
                f"checkpoint {path} is damaged: set aside as {aside.name}, "
                f"going on from {loaded.path.name}"
            )
        return loaded

    def compile(self, state: Any) -> Any:
        """Compiles the training step, and makes the first state where there is none."""
        began = time.monotonic()
        with (
            progress_bar.waiting(self.host.console, "compiling"),
            compilation_cache.kept_in(self.directory.cache, self._say),
        ):
            # Lowered from the template, so that a resumed run compiles the very same program.
            self._advance = self.program.advance.lower(self.template).compile()
            state = (
                self.program.init(self.keys) if state is None else self.program.to_devices(state)
            )
            state = jax.block_until_ready(state)
        seconds = time.monotonic() - began
        self._say(f"compiled in {seconds:.1f} s")
        self.manifest |= {"compile_seconds": round(seconds, 2), "from_frames": self.saved.frames}
        self._record(first=True)
        return state

    @contextmanager
    def open_table(self, position: Position) -> Iterator[None]:
        """Opens the table, cut back to what it held at `position`."""
        path, first_seed = self.directory.metrics, self.settings.first_seed
        table = lambda: metrics_table.table(path, first_seed, position.metrics_bytes)  # noqa: E731
        with multihost.first_inside(table) as self._table:
            yield

    @contextmanager
    def display(self, position: Position) -> Iterator[None]:
        """Shows progress from `position` on."""
        total = self.last * self.program.frames_per_iteration
        self._speed = progress_bar.Speedometer(position.frames, total, self.settings.seeds)
        with progress_bar.display(self.host.console, self._speed) as self._display:
            self._saved_at = time.monotonic()
            self._save_seconds = 0.0  # that the last save took
            yield

    def advance(self, state: Any) -> tuple[Any, metrics_table.Chunk]:
        """Plays one chunk; `state` is gone afterwards."""
        state, chunk = self._advance(state)
        return state, {name: np.asarray(values) for name, values in chunk.items()}

    def write(self, chunk: metrics_table.Chunk, position: Position) -> Position:
        """Writes a chunk's metrics and returns the position after it."""
        length = 0
        if self._table:
            length = self._table.append(chunk, position.frames, self.program.frames_per_iteration)
        iterations = position.iterations + self.program.iterations_per_chunk
        return Position(iterations, iterations * self.program.frames_per_iteration, length)

    def refuse_non_finite(self, chunk: metrics_table.Chunk, position: Position) -> None:
        """Stops the run at a loss that is not a finite number."""
        updates = self.settings.train.updates
        before = (position.iterations - self.program.iterations_per_chunk) * updates
        bad = chunk["first_bad_update"]  # counted within its iteration; NaN: none
        numbers = before + np.arange(len(bad))[:, None] * updates + bad + 1
        if not np.isnan(bad).all():
            self._stop_at(f"the loss of update {int(np.nanmin(numbers))} is not a finite number")

    def _stop_at(self, trouble: str) -> NoReturn:
        kept = f"is the one at {self.saved.frames:,} frames" if self.saved.frames else "is none"
        raise NonFiniteLossError(f"{trouble}; the last good checkpoint {kept}")

    def show(self, chunk: metrics_table.Chunk, position: Position) -> None:
        """Shows the speed and the means that matter, and says once that count tables are full."""
        self._display.update(position.frames, metrics_table.means(chunk))
        overflow = np.max(chunk.get("count_overflow", 0))
        if not self._told_of_overflow and overflow > OVERFLOW_SHARE * position.frames:
            self._told_of_overflow = True
            self._say(
                f"the count tables are full: {overflow:,.0f} visits found no room, and were "
                "rewarded as first ones; a new run with more --counts.capacity has room"
            )

    def keep_if_due(self, state: Any, position: Position) -> None:
        """Keeps the policies at the end of the first chunk that reaches the frames asked for."""
        chunk = self.program.iterations_per_chunk * self.program.frames_per_iteration
        if any(0 <= position.frames - frames < chunk for frames in self.host.keep_at):
            self._refuse_non_finite_parameters(state, position)
            saved_policies.keep(self.directory, self.settings, state.learner.agent, position)

    def save_if_due(self, state: Any, position: Position) -> None:
        """Saves a checkpoint if the last one is old enough."""
        least = self.host.checkpoint_seconds
        if least is None:
            least = min(self._save_seconds / SAVING_SHARE, LONGEST)
        if multihost.largest(time.monotonic() - self._saved_at >= least):
            self.save(state, position)

    def save(self, state: Any, position: Position) -> None:
        """Saves a checkpoint, unless this very state was saved already.

        Raises:
            NonFiniteLossError: the state is no longer numbers, and is not saved.
        """
        if position == self.saved:
            return
        began = time.monotonic()
        self._refuse_non_finite_parameters(state, position)
        if self._table:
            self._table.sync()
        checkpoint.save(self.directory.checkpoints, state, position, to_json(self.settings))
        self.saved = position
        self.manifest |= {
            "frames": position.frames,
            "frames_per_second": round(self._speed.frames_per_second),
            "last_checkpoint": manifest.now(),
            **self.host.measured(),
        }
        self._record(first=False)
        self._saved_at = time.monotonic()
        self._save_seconds = self._saved_at - began

    def _refuse_non_finite_parameters(self, state: Any, position: Position) -> None:
        if not all(
            np.isfinite(multihost.fetch(leaf)).all() for leaf in jax.tree.leaves(state.params)
        ):
            last = position.iterations * self.settings.train.updates
            self._stop_at(f"a parameter is not a finite number after update {last}")

    def _record(self, *, first: bool) -> None:
        if multihost.is_first():
            manifest.record(self.directory.manifest, self.manifest, first=first)

    def _say(self, line: str) -> None:
        self.host.console.print(line, soft_wrap=True, highlight=False)
