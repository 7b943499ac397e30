"""Train several runs in one program, as a sweep asks for."""

import itertools
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.runs.directory import RunDirectory, checkpoints, frames_of
from cbet_jax.runs.host_loop import HostSettings, train_together
from cbet_jax.runs.run_files import Run
from experiments.common import cli
from experiments.common.endings import NOT_FINITE, closing_line, end_stopped, show_figures
from experiments.common.experiment import Experiment, Opened
from experiments.common.opening import make_trackers, open_directory, read
from experiments.common.training_options import TrainingOptions

AND = "--and"  # between the command lines of runs that one program trains


class Asked[O: TrainingOptions](NamedTuple):
    """One of the runs that a command line asks for, if it asks for several."""

    options: O
    stored: RunSettings | None  # settings of the run to resume (None: a new run)
    root: Path  # its directory
    words: tuple[str, ...]  # of its part of the command line


def train_several[O: TrainingOptions](
    experiment: Experiment[O], arguments: Sequence[str], console: Console
) -> None:
    """Train several runs in one program; finished ones are left as they are.

    Runs that hold no checkpoint at the same frames, of which some have diverged, say, are trained
    by one program after the other.

    Args:
        experiment: the command.
        arguments: the command lines of the runs, with `AND` between them.
        console: shows progress.

    Raises:
        SettingsError: one of the command lines cannot be run, or not with the others.
        RunDirectoryError: a run's directory holds something else.
        SystemExit: not all runs have reached their ends.
    """
    if experiment.opened_together is None:
        raise SettingsError(f"{experiment.module} trains one run at a time: leave {AND} out")
    parts = itertools.groupby(arguments, lambda word: word == AND)
    asked = [_asked(experiment, tuple(words)) for is_joint, words in parts if not is_joint]
    left = [run for run in asked if not (run.stored and is_finished(run.root, run.stored))]
    troubles: list[str] = []
    for group in with_common_checkpoints(left):
        troubles += train_group(experiment, group, console)
    if troubles:
        cli.fail("; ".join(troubles), NOT_FINITE)


def train_group[O: TrainingOptions](
    experiment: Experiment[O], group: Sequence[Asked[O]], console: Console
) -> list[str]:
    """Train some runs in one program, and return a line for each that diverged.

    Raises:
        SettingsError: the runs cannot share a program, or memory has no room for it.
        RunDirectoryError: a run's directory holds something else.
        SystemExit: a signal asked to stop.
    """
    assert experiment.opened_together is not None
    settings, program = experiment.opened_together([run.options for run in group], console)
    first = group[0].options
    host = HostSettings(console, checkpoint_seconds=first.checkpoint_seconds, keep_at=first.keep_at)
    troubles: list[str] = []
    with ExitStack() as opened:
        runs = []
        for asked, one in zip(group, settings, strict=True):
            directory = open_directory(asked.options, Opened(one, program))
            trackers = make_trackers(asked.options, directory, one, console)
            if trackers:
                opened.callback(trackers.close)
            runs.append(Run(directory, one, trackers, asked.words))
        console.print(f"{len(runs)} runs in one program", highlight=False)
        try:
            outcomes = train_together(runs, program, host)
        except SettingsError:  # it does not fit into memory: leave nothing in the way
            for asked, run in zip(group, runs, strict=True):
                if asked.stored is None:
                    run.directory.discard()
            raise
        stopped = outcomes[0].signal
        for run, outcome in zip(runs, outcomes, strict=True):
            if outcome.finished:
                stopped = show_figures(run.directory, run.trackers) or stopped
            if outcome.trouble:
                troubles.append(f"{run.directory.root}: {outcome.trouble}")
            else:
                line = closing_line(experiment, run.directory, outcome, run.command)
                console.print(line, soft_wrap=True, highlight=False, markup=False)
    if stopped:
        end_stopped(stopped)
    return troubles


def _asked[O: TrainingOptions](experiment: Experiment[O], words: tuple[str, ...]) -> Asked[O]:
    options, stored = read(experiment, words)
    if options.out is None:
        raise SettingsError(f"each of the runs that {AND} joins needs --out DIR, its directory")
    if options.distributed:
        raise SettingsError(f"--distributed trains one run at a time: leave {AND} out")
    return Asked(options, stored, options.out, words)


def is_finished(root: Path, settings: RunSettings) -> bool:
    """Return whether a run has played all of its frames."""
    saved = checkpoints(RunDirectory(root).checkpoints)
    return bool(saved) and frames_of(saved[-1]) >= settings.train.frames


def with_common_checkpoints[O: TrainingOptions](runs: Sequence[Asked[O]]) -> list[list[Asked[O]]]:
    """Return the runs in groups, each of which can continue from one number of frames."""
    groups: list[tuple[set[int], list[Asked[O]]]] = []
    for run in runs:
        saved = checkpoints(RunDirectory(run.root).checkpoints)
        frames = set(map(frames_of, saved)) or {0}
        for common, group in groups:
            if common & frames:
                common &= frames
                group.append(run)
                break
        else:
            groups.append((frames, [run]))
    return [group for _, group in groups]
