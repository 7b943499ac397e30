"""The host's side of training: what happens between two chunks of the compiled program.

Nothing here decides what is computed. When a checkpoint is written depends on the clock, but where
the chunks begin and end does not. So a run that was killed and resumed ends with the same numbers,
bit for bit.

Where several hosts train together, all of them take these steps; only the first reads and writes
files (`cbet_jax.runs.multihost`).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from cbet_jax.config import RunSettings
from cbet_jax.program import Program, seed_keys
from cbet_jax.runs import (
    checkpoint_arrays,
    compilation_cache,
    manifest,
    memory,
    metrics_table,
    multihost,
    progress_bar,
    saved_policies,
)
from cbet_jax.runs.devices import compiled_quickly
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.metrics_table import Chunk
from cbet_jax.runs.run_files import Run, RunFiles
from cbet_jax.runs.signals import Stop, beside, heard_during, stop_on_signals
from cbet_jax.runs.tracking import Trackers
from cbet_jax.train import TrainState

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
    trouble: str = ""  # one line that says how it diverged, if it did


@dataclass(frozen=True)
class HostSettings:
    """What the host does while the program computes; none of it changes the numbers."""

    console: Console
    command: tuple[str, ...] = ()  # for the manifest of a run trained alone
    checkpoint_seconds: float | None = None  # between two, at least (None: saving.SAVING_SHARE)
    keep_at: tuple[int, ...] = ()  # frames at which the policies are kept for good
    trackers: Trackers | None = None  # that follow the metrics of a run trained alone
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
        NotEnoughMemoryError: the program needs more memory than there is.
    """
    run = Run(directory, settings, host.trackers, host.command)
    (outcome,) = train_together([run], program, host)
    if outcome.trouble:
        raise NonFiniteLossError(outcome.trouble)
    return outcome


def train_together(runs: Sequence[Run], program: Program, host: HostSettings) -> list[Outcome]:
    """Train several runs in one program until the last frame, or until a signal asks to stop.

    Each keeps its own files, as if it were trained alone. They are saved at the same moments, and
    continue from the newest checkpoint that all of them hold, or from their beginnings. One that
    diverges ends there; the others continue.

    Args:
        runs: their settings differ in numbers only.
        program: the compiled program of all these settings, in this order.
        host: what to show, and how often to save.

    Returns:
        How far each run came, and why it ended.

    Raises:
        RunDirectoryError: a directory's files do not fit the settings.
        NotEnoughMemoryError: the program needs more memory than there is.
    """
    with ExitStack() as locks, stop_on_signals() as stop:
        for one in runs:
            locks.enter_context(multihost.first_inside(one.directory.lock))
        run = _Run(runs, program, host)
        run.mend()
        state, start = run.restore()
        done = start
        if done < run.last:
            run.keep_settings()
            advance, state = run.compile(state, stop)
            run.begin_tracking()
            with run.open_tables(), run.display(done):
                while run.active and done < run.last and not multihost.largest(stop.signal):
                    state, chunk = advance(state)
                    done += run.chunk_iterations
                    run.write(chunk)
                    run.show(chunk, done)
                    run.keep_if_due(state, done)
                    run.save_if_due(state)
                run.save(state)
        signal = multihost.largest(stop.signal)
        finished = done >= run.iterations
        return [
            Outcome(
                files.position.frames,
                finished and not files.trouble,
                done != start,
                signal,
                files.trouble,
            )
            for files in run.files
        ]


class _Run:
    """The steps that `train_together` is made of, and what they share."""

    def __init__(
        self,
        runs: Sequence[Run],
        program: Program,
        host: HostSettings,
    ) -> None:
        self.settings = runs[0].settings
        self.host = host
        each = self.settings.seeds  # the same for all runs of a program
        self.files = [
            RunFiles(run, number * each, host.checkpoint_seconds, self.say)
            for number, run in enumerate(runs)
        ]
        self.program = program
        keys = [seed_keys(each, run.settings.first_seed) for run in runs]
        self.keys = jnp.concatenate(keys) if len(keys) > 1 else keys[0]
        self.template = jax.eval_shape(program.init, self.keys)
        self.chunk_iterations = program.iterations_per_chunk
        self.chunk_frames = program.iterations_per_chunk * program.frames_per_iteration
        chunks = -(-self.settings.train.iterations // self.chunk_iterations)
        chunks_now = chunks if host.until is None else -(-host.until // self.chunk_frames)
        self.iterations = chunks * self.chunk_iterations  # of the whole run
        self.last = min(chunks, chunks_now) * self.chunk_iterations  # iteration to reach now
        self.saver = self.files[0].saver  # whose clock says when to save all
        self.has_told_of_overflow = False
        self.has_told_of_time = False

    @property
    def active(self) -> list[RunFiles]:
        """The runs that have not diverged."""
        return [files for files in self.files if not files.trouble]

    def mend(self) -> None:
        """Write configurations anew that are damaged."""
        for files in self.files:
            multihost.on_first(partial(files.directory.mend, files.settings, self.say))

    def restore(self) -> tuple[TrainState | None, int]:
        """Read the newest good checkpoints; None where the runs have not begun.

        Returns:
            The state of all runs, and the iterations that they have done.

        Raises:
            RunDirectoryError: it is another program's, or has no room for so many frames.
        """
        template = self.template
        if len(self.files) > 1:
            template = jax.tree.map(self._of_one, template)
        states = [files.restore(template, self.say) for files in self.files]
        if len({position.iterations for _, position in states}) > 1:
            common = set.intersection(*(set(files.saver.held()) for files in self.files))
            frames = max(common, default=0)
            states = [files.saver.restore_at(frames, template, self.say) for files in self.files]
        for files, (_, position) in zip(self.files, states, strict=True):
            files.position = position
        if states[0][0] is None or len(states) == 1:
            return states[0][0], states[0][1].iterations
        state = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *(one for one, _ in states))
        return state, states[0][1].iterations

    def _of_one(self, leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((self.settings.seeds, *leaf.shape[1:]), leaf.dtype)

    def keep_settings(self) -> None:
        """Write the settings of runs that are made longer."""
        for files in self.files:
            multihost.on_first(files.keep_settings)

    def begin_tracking(self) -> None:
        """Open the trackers, on the first host."""
        for files in self.files if multihost.is_first() else ():
            if files.trackers:
                files.trackers.begin(files.position.frames)

    def compile(self, state: TrainState | None, stop: Stop) -> tuple[Advance, TrainState]:
        """Compile the training step, and make the first state where there is none."""
        began = time.monotonic()
        stop.waits_for = "compiling"
        with (
            progress_bar.waiting(self.host.console, "compiling"),
            compilation_cache.kept(self.say),
            beside(self.compile_init if state is None else lambda: None) as init,
        ):
            # Lowered from the template, so a resumed run compiles the very same program.
            compiled = heard_during(self.program.advance.lower(self.template).compile)
            memory.refuse_program(compiled)
            make_state = init()
            state = make_state(self.keys) if make_state else self.program.to_devices(state)
            state = jax.block_until_ready(state)
        stop.waits_for = "this chunk"
        seconds = time.monotonic() - began
        self.say(f"compiled in {seconds:.1f} s")
        from_frames = self.saver.saved.frames
        self.record(self.files, compile_seconds=round(seconds, 2), from_frames=from_frames)

        def play(state: TrainState) -> tuple[TrainState, Chunk]:
            state, metrics = compiled(state)
            return state, {name: np.asarray(values) for name, values in metrics.items()}

        return lambda state: heard_during(partial(play, state)), state

    def compile_init(self) -> Callable[..., TrainState]:
        """Compile what makes the first state; beside the training step, this takes no longer."""
        return self.program.init.lower(self.keys).compile(compiled_quickly())

    @contextmanager
    def open_tables(self) -> Iterator[None]:
        """Open the tables of metrics, cut back to what they held at the runs' positions."""
        with ExitStack() as tables:
            for files in self.files:
                open_ = partial(
                    metrics_table.table,
                    files.directory.metrics,
                    files.settings.first_seed,
                    files.position.metrics_bytes,
                )
                files.table = tables.enter_context(multihost.first_inside(open_))
            yield

    @contextmanager
    def display(self, done: int) -> Iterator[None]:
        """Show progress, from the iterations that are done on."""
        per_iteration = self.program.frames_per_iteration
        frames, total = done * per_iteration, self.last * per_iteration
        self._speed = progress_bar.Speedometer(frames, total, len(self.keys))
        with progress_bar.display(self.host.console, self._speed) as self._display:
            self.saver.start_clock()
            yield

    def write(self, chunk: Chunk) -> None:
        """Write a chunk's metrics."""
        for files in self.active:
            files.write(chunk, self.chunk_iterations, self.program.frames_per_iteration)
        self.tell_of_ends()

    def tell_of_ends(self) -> None:
        """Say which of several runs have diverged."""
        for files in self.files:
            if len(self.files) > 1 and files.trouble and files.table:
                self.say(f"{files.directory.root} diverged: {files.trouble}")
                files.table = None

    def show(self, chunk: Chunk, done: int) -> None:
        """Show the speed and the main metrics; say once how long it takes, and of full tables."""
        if not self.active:
            return
        frames = done * self.program.frames_per_iteration
        self._display.update(frames, metrics_table.means(chunk))
        if not self.has_told_of_time and self._speed.seconds_left > LONG_SECONDS:
            hours = self._speed.seconds_left / 3600
            speed = f"{self._speed.frames_per_second:,.0f} frames/s"
            self.say(f"at {speed} this takes {hours:.1f} hours more{self.host.advice}")
        self.has_told_of_time = True
        overflow = np.max(chunk.get("count_overflow", 0))
        if not self.has_told_of_overflow and overflow > OVERFLOW_SHARE * frames:
            self.has_told_of_overflow = True
            self.say(
                f"the count tables are full: {overflow:,.0f} visits found no room, and were "
                "rewarded as first ones; a new run with more --counts.capacity has room"
            )

    def keep_if_due(self, state: TrainState, done: int) -> None:
        """Keep the policies for good at the first chunk that reaches the frames asked for."""
        frames = done * self.program.frames_per_iteration
        past = (frames - at for at in self.host.keep_at)
        if not any(0 <= over < self.chunk_frames for over in past):
            return
        for files in self.active:
            if files.has_finite(state.learner):
                params = self._part(state.learner.agent, files)
                saved_policies.keep(files.directory, files.settings, params, files.position)
        self.tell_of_ends()

    def save_if_due(self, state: TrainState) -> None:
        """Save checkpoints if the last ones are old enough."""
        if self.saver.is_due():
            self.save(state)

    def save(self, state: TrainState) -> None:
        """Save each run's checkpoint, unless this very state was saved already.

        A run whose state is no longer finite numbers is not saved, and ends.
        """
        due = [files for files in self.active if files.position != files.saver.saved]
        if not due:
            return
        with self.saver.timing():
            due = [files for files in due if files.has_finite(state.learner)]
            whole = state if len(self.files) == 1 else checkpoint_arrays.on_host(state)
            for files in due:
                if files.table:
                    files.table.sync()
                part = self._part(whole, files)
                heard_during(partial(files.saver.save, part, files.position))
            if due:
                self.record(
                    due,
                    frames=due[0].position.frames,
                    frames_per_second=round(self._speed.frames_per_second / len(self.files)),
                    last_checkpoint=manifest.now(),
                    **self.host.measured(),
                )
        self.tell_of_ends()

    def _part[T](self, tree: T, files: RunFiles) -> T:
        """Return one run's part of a tree of arrays `[agents, ...]`."""
        if len(self.files) == 1:
            return tree
        return jax.tree.map(lambda leaf: np.asarray(leaf)[files.agents], tree)

    def record(self, runs: Sequence[RunFiles], **measured: Any) -> None:
        """Write what was measured into the manifests."""
        if len(self.files) > 1:
            measured["runs_together"] = len(self.files)
        for files in runs if multihost.is_first() else ():
            files.session.record(**measured)

    def say(self, line: str) -> None:
        """Print one line."""
        self.host.console.print(line, soft_wrap=True, highlight=False)
