"""Open runs, train them and report how they ended: the `main` of all training commands."""

import itertools
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from rich.console import Console

from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.program import Program
from cbet_jax.runs import multihost
from cbet_jax.runs.directory import RunDirectory, checkpoints, frames_of
from cbet_jax.runs.host_loop import HostSettings, Outcome, train_together
from cbet_jax.runs.run_files import Run
from cbet_jax.runs.task_record import EarlyEnd
from envs.errors import UnknownEnvironment
from envs.habitat.simulator import SimulatorError
from experiments.common import cli
from experiments.common.commands import AND
from experiments.common.endings import (
    NOT_FINITE,
    closing_line,
    end_stopped,
    how_to_continue,
    show_figures,
)
from experiments.common.interrupts import INTERRUPTED
from experiments.common.opening import make_trackers, open_directory, read
from experiments.common.presets import PRESETS
from experiments.common.screen import Screen, say
from experiments.common.training_options import Asked, Experiment, Opened, TrainingOptions

LAPTOP = "; --preset laptop trains a smaller network in about nine minutes"


def main[O: TrainingOptions](
    experiment: Experiment[O], arguments: Sequence[str] | None = None
) -> None:
    """Train as a command line asks (None: `sys.argv`).

    Finished runs are left as they are. Runs without a common checkpoint are trained one after the
    other.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors(UnknownEnvironment, SimulatorError):
        if AND not in arguments:
            groups = [[Asked(*read(experiment, arguments), tuple(arguments))]]
        else:
            groups = with_common_checkpoints(unfinished(experiment, arguments))
        troubles = [line for group in groups for line in train_group(experiment, group, console)]
        if troubles:
            cli.fail("; ".join(troubles), NOT_FINITE)


def unfinished[O: TrainingOptions](
    experiment: Experiment[O], arguments: Sequence[str]
) -> list[Asked[O]]:
    """Return the unfinished runs of a command line, and refuse runs that cannot be joined."""
    if not experiment.together:
        raise SettingsError(f"{experiment.module} trains one run at a time: leave {AND} out")
    left = []
    for is_and, words in itertools.groupby(arguments, lambda word: word == AND):
        if is_and:
            continue
        run = Asked(*read(experiment, line := tuple(words)), line)
        if run.options.out is None:
            raise SettingsError(f"each of the runs that {AND} joins needs --out DIR, its directory")
        if run.options.distributed:
            raise SettingsError(f"--distributed trains one run at a time: leave {AND} out")
        if not (run.stored and max(saved_frames(run), default=0) >= run.stored.train.frames):
            left.append(run)
    return left


def with_common_checkpoints[O: TrainingOptions](runs: Sequence[Asked[O]]) -> list[list[Asked[O]]]:
    """Group runs that have a checkpoint at the same frames."""
    groups: list[tuple[set[int], list[Asked[O]]]] = []
    for run in runs:
        frames = saved_frames(run) or {0}
        for common, group in groups:
            if common & frames:
                common &= frames
                group.append(run)
                break
        else:
            groups.append((frames, [run]))
    return [group for _, group in groups]


def saved_frames[O: TrainingOptions](run: Asked[O]) -> set[int]:
    """Return the frames at which a run has checkpoints."""
    assert run.options.out is not None
    return set(map(frames_of, checkpoints(RunDirectory(run.options.out).checkpoints)))


def train_group[O: TrainingOptions](
    experiment: Experiment[O], group: Sequence[Asked[O]], console: Console
) -> list[str]:
    """Train runs in one program, draw them, and print how they ended and what to do next.

    Returns:
        A line for each run that diverged.
    """
    with ExitStack() as closing:
        opened = closing.enter_context(experiment.opened(group, console))
        runs = [
            _open_run(asked, settings, opened, console)
            for asked, settings in zip(group, opened.settings, strict=True)
        ]
        for run in runs:
            if run.trackers:
                closing.callback(run.trackers.close)
        outcomes = _train(experiment, group, runs, opened, console)
        stopped = outcomes[0].signal
        for asked, run, outcome in zip(group, runs, outcomes, strict=True):
            if outcome.trouble:
                continue
            if outcome.finished or outcome.ending:
                filmed = asked.options.film and outcome.trained and not outcome.signal
                film = experiment.film if filmed else None
                make = partial(film, asked.options, run.directory.root) if film else None
                stopped = show_figures(run.directory, run.trackers, make) or stopped
            say(console, closing_line(experiment, run.directory, outcome, asked.words))
    if stopped:
        end_stopped(stopped)
    place = [f"{run.directory.root}: " if len(runs) > 1 else "" for run in runs]
    return [at + one.trouble for at, one in zip(place, outcomes, strict=True) if one.trouble]


def _open_run[O: TrainingOptions](
    asked: Asked[O], settings: RunSettings, opened: Opened, console: Console
) -> Run:
    directory = open_directory(asked.options, settings, opened.prefix)
    opened.begin(directory)
    say(console, f"run directory: {directory.root}")
    trackers = make_trackers(asked.options, directory, settings, console)
    return Run(directory, settings, trackers, asked.words)


def _train[O: TrainingOptions](
    experiment: Experiment[O],
    group: Sequence[Asked[O]],
    runs: Sequence[Run],
    opened: Opened,
    console: Console,
) -> list[Outcome]:
    """Train; discard the directories of new runs that do not fit into memory."""
    first = group[0].options
    if len(runs) > 1:
        console.print(f"{len(runs)} runs in one program", highlight=False)
    if line := rounding(first.train.frames, opened.program):
        say(console, line)
    host = HostSettings(
        console,
        checkpoint_seconds=first.checkpoint_seconds,
        keep_at=first.keep_at,
        measured=opened.measured,
        advice=advice(runs[0].settings),
        until=first.until,
        early_end=EarlyEnd(first.until_success, first.success_frames, first.without_success),
    )
    try:
        return train_together(runs, opened.program, host)
    except SettingsError:  # leave nothing in the way of another try
        for asked, run in zip(group, runs, strict=True):
            if asked.stored is None and multihost.is_first():
                run.directory.discard()
        raise
    except KeyboardInterrupt:
        if len(runs) > 1:
            raise
        again = how_to_continue(experiment, runs[0].directory, group[0].words)
        cli.fail(f"interrupted; {again}", INTERRUPTED)


def rounding(frames: int, program: Program) -> str:
    """Return a note that a run's frames are rounded up, '' if they are whole chunks."""
    chunk = program.iterations_per_chunk * program.frames_per_iteration
    rounded = -(-frames // chunk) * chunk
    if rounded == frames:
        return ""
    return f"{frames:,} frames are rounded up to {rounded:,}: whole chunks of {chunk:,}"


def advice(settings: RunSettings) -> str:
    """Return advice to train faster, '' for a small network."""
    units = settings.train.network.lstm_units
    is_small = settings.habitat or units <= PRESETS["laptop"].train.network.lstm_units
    return "" if is_small else LAPTOP
