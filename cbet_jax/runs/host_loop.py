"""The host's side of training, between two chunks of the compiled program.

The host does not change the numbers: checkpoints are written by the clock, but chunks begin and
end at fixed frames. So a run that was killed and resumed ends with the same numbers, bit for bit.

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

from cbet_jax.program import Program, seed_keys
from cbet_jax.runs import (
    checkpoint,
    compilation_cache,
    manifest,
    memory,
    metrics_table,
    multihost,
    progress_bar,
)
from cbet_jax.runs.devices import compiled_quickly
from cbet_jax.runs.directory import path_at
from cbet_jax.runs.metrics_table import Chunk
from cbet_jax.runs.run_files import Run, RunFiles
from cbet_jax.runs.save_clock import SaveClock
from cbet_jax.runs.signals import Stop, in_thread, interruptible, stop_on_signals
from cbet_jax.runs.task_record import TO_THE_END, EarlyEnd
from cbet_jax.train import TrainState

Advance = Callable[[TrainState], tuple[TrainState, Chunk]]  # plays a chunk, donates its input state

LONG_SECONDS = 3600.0  # a longer run says so after its first chunk
OVERFLOW_SHARE = 0.001  # reported share of visits without room in count tables


class Outcome(NamedTuple):
    """How a run ended."""

    frames: int  # played so far by each seed
    finished: bool
    trained: bool  # False: nothing was left to do
    signal: int  # signal that asked it to stop (0: none)
    trouble: str = ""  # how it diverged, in one line, if it did
    ending: str = ""  # why it ended before its last frame, if it did
    story: str = ""  # how its best policies played a task, and how the last ones do


@dataclass(frozen=True)
class HostSettings:
    """The host's settings, which do not change the numbers."""

    console: Console
    checkpoint_seconds: float | None = None  # least time between two (None: see `SaveClock`)
    keep_at: tuple[int, ...] = ()  # frames at which the policies are kept for good
    advice: str = ""  # added to the line that a run takes long
    until: int | None = None  # frames to train for now (None: all); the run can be continued
    early_end: EarlyEnd = TO_THE_END  # when a task ends before its last frame
    measured: Callable[[], dict[str, Any]] = dict  # further entries of the manifest


def train_together(runs: Sequence[Run], program: Program, host: HostSettings) -> list[Outcome]:
    """Train several runs in one program until the last frame, or until a signal asks to stop.

    Each has its own files, as a single run has. All are saved at the same moments, and continue
    from the newest checkpoint that all hold, or from their beginnings. A run that diverges ends;
    the others continue.

    Raises:
        RunDirectoryError: a directory's files do not fit the settings.
        SettingsError: the program needs more memory than there is.
    """
    with ExitStack() as locks, stop_on_signals() as stop:
        for run in runs:
            locks.enter_context(multihost.first_inside(run.directory.lock))
        loop = _Loop(runs, program, host)
        state = loop.restore()
        begun_at = loop.done
        if loop.is_left():
            advance, state = loop.compile(state, stop)
            with loop.open_tables(), loop.display():
                while loop.is_left() and not multihost.largest(stop.signal):
                    state, chunk = advance(state)
                    loop.write(chunk)
                    loop.show(chunk)
                    loop.keep_policies(state)
                    loop.keep_best(state)
                    if loop.clock.is_due():
                        loop.save(state)
                loop.save(state)
        for files in loop.runs:
            files.record_early_end()
        signal = multihost.largest(stop.signal)
        finished, trained = loop.done >= loop.iterations, loop.done != begun_at
        return [
            Outcome(
                frames=run.position.frames,
                finished=finished and not run.trouble,
                trained=trained,
                signal=signal,
                trouble=run.trouble,
                ending=run.ending,
                story=run.task.story() if run.task else "",
            )
            for run in loop.runs
        ]


class _Loop:
    """The steps of `train_together`, and what they share."""

    def __init__(self, runs: Sequence[Run], program: Program, host: HostSettings) -> None:
        self.host = host
        self.program = program
        self.seeds = runs[0].settings.seeds  # the same for all runs of a program
        self.runs = [
            RunFiles(run, i * self.seeds, self.say, host.early_end) for i, run in enumerate(runs)
        ]
        keys = [seed_keys(self.seeds, run.settings.first_seed) for run in runs]
        self.keys = jnp.concatenate(keys) if len(keys) > 1 else keys[0]
        self.template = jax.eval_shape(program.init, self.keys)
        self.chunk_frames = program.iterations_per_chunk * program.frames_per_iteration
        chunks = -(-runs[0].settings.train.iterations // program.iterations_per_chunk)
        chunks_now = chunks if host.until is None else -(-host.until // self.chunk_frames)
        self.iterations = chunks * program.iterations_per_chunk  # iterations of the whole run
        self.last = min(chunks, chunks_now) * program.iterations_per_chunk  # reached now
        self.done = 0  # iterations
        self.clock = SaveClock(host.checkpoint_seconds)
        self.told: set[str] = set()  # messages shown once

    def sound(self) -> list[RunFiles]:
        """Return the runs that have not diverged."""
        return [run for run in self.runs if not run.trouble]

    def is_left(self) -> bool:
        """Return whether a run has chunks left to play now."""
        return self.done < self.last and any(not run.ending for run in self.sound())

    def restore(self) -> TrainState | None:
        """Read the newest good checkpoints (None: the runs have not begun).

        Raises:
            RunDirectoryError: one is another program's, or has no room for so many frames.
        """

        def of_one(leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct((self.seeds, *leaf.shape[1:]), leaf.dtype)

        template = jax.tree.map(of_one, self.template)
        states = [run.restore(template) for run in self.runs]
        if len({run.position.iterations for run in self.runs}) > 1:
            saved = (run.checkpoint_frames() for run in self.runs)
            common = max(set.intersection(*saved), default=0)
            self.say(f"the runs continue from {common:,} frames, the last that all have saved")
            states = [run.go_back(common, template) for run in self.runs]
        self.done = self.runs[0].position.iterations
        for run in self.runs:
            run.restore_task()
        self._tell_of_policies_passed()
        if states[0] is None or len(states) == 1:
            return states[0]
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *states)

    def _tell_of_policies_passed(self) -> None:
        """Say which policies cannot be kept, since a resumed run has passed their frames."""
        for at in self.host.keep_at:
            frames = self._end_of_chunk(at)
            paths = [path_at(run.directory.policies, frames) for run in self.runs]
            if frames <= self._frames and not all(path.exists() for path in paths):
                self.say(f"no policies are kept at {at:,} frames: the run has passed them")

    def _end_of_chunk(self, frames: int) -> int:
        """Return the frames at the end of the first chunk that reaches some frames."""
        return -(-frames // self.chunk_frames) * self.chunk_frames

    @property
    def _frames(self) -> int:
        """Frames that each seed has played."""
        return self.done * self.program.frames_per_iteration

    def compile(self, state: TrainState | None, stop: Stop) -> tuple[Advance, TrainState]:
        """Compile the training step; without a state, make the first one."""
        began = time.monotonic()
        stop.waits_for = "compiling"
        compilation_cache.use(self.say)
        with (
            progress_bar.waiting(self.host.console, "compiling acting and learning, once"),
            in_thread(self._compile_init if state is None else lambda: None) as init,
        ):
            # Lowered from the template, so a resumed run compiles the very same program.
            lowered = self.program.advance.lower(self.template)
            self.host.early_end.refuse_unmeasured(lowered.out_info[1])
            compiled = interruptible(lowered.compile)
            memory.refuse_program(compiled)
            make_state = init()
            state = make_state(self.keys) if make_state else self.program.to_devices(state)
            state = jax.block_until_ready(state)
        stop.waits_for = "this chunk"
        seconds = time.monotonic() - began
        self.say(f"compiled in {seconds:.1f} s")
        for run in self.runs:
            multihost.on_first(run.begin)
        from_frames = self.runs[0].saved.frames
        self._record(self.runs, compile_seconds=round(seconds, 2), from_frames=from_frames)

        def play(state: TrainState) -> tuple[TrainState, Chunk]:
            state, metrics = compiled(state)
            return state, {name: np.asarray(values) for name, values in metrics.items()}

        return lambda state: interruptible(partial(play, state)), state

    def _compile_init(self) -> Callable[..., TrainState]:
        """Compile the making of the first state, while the training step is compiled."""
        return self.program.init.lower(self.keys).compile(compiled_quickly())

    @contextmanager
    def open_tables(self) -> Iterator[None]:
        """Open the tables of metrics, cut back to the runs' positions."""
        with ExitStack() as tables:
            for run in self.runs:
                tables.enter_context(run.open_table())
            yield

    @contextmanager
    def display(self) -> Iterator[None]:
        """Show progress while the block runs."""
        each = self.program.frames_per_iteration
        self._speed = progress_bar.Speedometer(self.done * each, self.last * each, len(self.keys))
        with progress_bar.display(self.host.console, self._speed) as self._display:
            self.clock.restart()
            yield

    def write(self, chunk: Chunk) -> None:
        """Write a chunk's metrics."""
        self.done += self.program.iterations_per_chunk
        for run in self.sound():
            run.write(chunk, self.program.iterations_per_chunk, self.program.frames_per_iteration)
        self._tell_of_ends()

    def show(self, chunk: Chunk) -> None:
        """Show speed and main metrics; say once if the run is long or tables are full."""
        sound = [run.agents for run in self.sound()]
        if not sound:
            return
        chunk = {
            name: np.concatenate([values[:, agents] for agents in sound], axis=1)
            for name, values in chunk.items()
        }
        self._display.update(self._frames, metrics_table.means(chunk))
        if "time" not in self.told and self._speed.seconds_left > LONG_SECONDS:
            hours = self._speed.seconds_left / 3600
            speed = f"{self._speed.frames_per_second:,.0f} frames/s"
            self.say(f"at {speed} this takes {hours:.1f} hours more{self.host.advice}")
        self.told.add("time")  # after the first chunk, whose speed is that of the rest
        overflow = np.max(chunk.get("count_overflow", 0))
        if overflow > OVERFLOW_SHARE * self._frames and "overflow" not in self.told:
            self.told.add("overflow")
            self.say(
                f"the count tables are full: {overflow:,.0f} visits found no room, and were "
                "rewarded as first ones; a new run with more --counts.capacity has room"
            )

    def keep_policies(self, state: TrainState) -> None:
        """Keep the policies for good at the first chunk that reaches the frames asked for."""
        if self._frames not in map(self._end_of_chunk, self.host.keep_at):
            return
        kept = [run for run in self.sound() if run.has_finite(state.learner)]
        policies = _policies(state) if kept else {}
        for run in kept:
            run.keep_policies(policies)
        self._tell_of_ends()

    def keep_best(self, state: TrainState) -> None:
        """Keep the policies that play their task at least as well as ever; tell once of a fall."""
        better = [run for run in self.sound() if run.is_best() and run.has_finite(state.learner)]
        policies = _policies(state) if better else {}
        for run in better:
            run.keep_best(policies)
        for run in self.sound():
            if run.task and run.task.fallen.any():
                best = f"{run.directory.root} {run.task.best_frames}"
                if best not in self.told:
                    self.told.add(best)
                    self.say(f"{run.directory.root}: {run.task.story()}")

    def save(self, state: TrainState) -> None:
        """Save each run's checkpoint, unless this very state was saved already.

        A run whose state is no longer finite numbers is not saved, and ends.
        """
        due = [run for run in self.sound() if run.position != run.saved]
        if not due:
            return
        with self.clock.saving():
            due = [run for run in due if run.has_finite(state.learner)]
            arrays = checkpoint.on_host(state) if due else {}
            for run in due:
                run.save(arrays)
            if due:
                self._record(
                    due,
                    frames=due[0].position.frames,
                    frames_per_second=round(self._speed.frames_per_second / len(self.runs)),
                    last_checkpoint=manifest.now(),
                    **self.host.measured(),
                )
        self._tell_of_ends()

    def _record(self, runs: Sequence[RunFiles], **measured: Any) -> None:
        """Record measurements in the manifests."""
        together = {"runs_together": len(self.runs)} if len(self.runs) > 1 else {}
        for run in runs:
            run.record(**measured, **together)

    def _tell_of_ends(self) -> None:
        """Say which of several runs have diverged."""
        for run in self.runs:
            if len(self.runs) > 1 and run.trouble and str(run.directory.root) not in self.told:
                self.told.add(str(run.directory.root))
                self.say(f"{run.directory.root} diverged: {run.trouble}")

    def say(self, line: str) -> None:
        """Print one line."""
        self.host.console.print(line, soft_wrap=True, highlight=False)


def _policies(state: TrainState) -> dict[str, np.ndarray]:
    """Return the policies of a state by the names that they have in its checkpoint."""
    agent = state.learner.agent
    return checkpoint.on_host({"learner": {"policy": agent.learnt, "fixed": agent.fixed}})
