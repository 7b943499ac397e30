"""Open runs, train them in one program, and report how they ended."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from rich.console import Console

from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.program import Program
from cbet_jax.runs import multihost
from cbet_jax.runs.host_loop import HostSettings, Outcome, train_together
from cbet_jax.runs.run_files import Run
from cbet_jax.runs.task_record import EarlyEnd
from cbet_jax.runs.tracking import Trackers
from experiments.common import cli, interrupts
from experiments.common.endings import closing_line, how_to_continue, show_figures
from experiments.common.opening import open_directory
from experiments.common.presets import PRESETS
from experiments.common.screen import say
from experiments.common.training_options import Asked, Experiment, Opened, TrainingOptions


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
    interrupts.end_if_stopped(stopped)
    place = [f"{run.directory.root}: " if len(runs) > 1 else "" for run in runs]
    return [at + one.trouble for at, one in zip(place, outcomes, strict=True) if one.trouble]


def _open_run[O: TrainingOptions](
    asked: Asked[O], settings: RunSettings, opened: Opened, console: Console
) -> Run:
    directory = open_directory(asked.options, settings, opened.prefix)
    say(console, f"run directory: {directory.root}")
    opened.begin(directory)
    trackers = Trackers(asked.options.track, directory, settings, partial(say, console))
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
        early_end=EarlyEnd(**first.early_end),
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
        cli.fail(f"interrupted; {again}", interrupts.INTERRUPTED)


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
    return "" if is_small else "; --preset laptop trains a smaller network in about four minutes"
