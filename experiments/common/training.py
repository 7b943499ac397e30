"""The `main` of all training commands."""

import sys
from collections.abc import Sequence
from typing import Any

from cbet_jax.config import SettingsError
from cbet_jax.runs import multihost
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.host_loop import HostSettings, NonFiniteLossError, train
from envs.habitat.simulator import SimulatorError
from envs.registry import UnknownEnvironment
from experiments.common import cli, durations
from experiments.common.endings import (
    NOT_FINITE,
    closing_line,
    end_stopped,
    how_to_continue,
    show_figures,
)
from experiments.common.experiment import Experiment, Opened
from experiments.common.interrupts import INTERRUPTED
from experiments.common.opening import make_trackers, open_directory, read
from experiments.common.screen import Screen
from experiments.common.training_options import TrainingOptions
from experiments.common.training_together import AND, train_several


def main[O: TrainingOptions](experiment: Experiment[O], arguments: Sequence[str] | None) -> None:
    """Train as a command line asks (None: `sys.argv`).

    A sweep trains several runs in one program: it puts `AND` between their command lines.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors(UnknownEnvironment, SimulatorError):
        if AND in arguments:
            train_several(experiment, arguments, console)
            return
        options, stored = read(experiment, arguments)
        with experiment.opened(options, stored, console) as run:
            directory = open_directory(options, run)
            run.begin(directory)
            if options.film and experiment.film:
                run = run._replace(film=experiment.film(options))
            seconds, keep_at = options.checkpoint_seconds, options.keep_at
            host = HostSettings(
                console,
                tuple(arguments),
                seconds,
                keep_at,
                measured=run.measured,
                trackers=make_trackers(options, directory, run.settings, console),
                advice=durations.advice(run.settings),
            )
            try:
                execute(experiment, directory, run, host)
            except SettingsError:  # it does not fit into memory: leave nothing in the way
                if stored is None and multihost.is_first():
                    directory.discard()
                raise


def execute(
    experiment: Experiment[Any], directory: RunDirectory, run: Opened, host: HostSettings
) -> None:
    """Train, draw the learning curves, and say how the run ended and what to do next.

    Args:
        experiment: names the commands to print.
        directory: of the run.
        run: to train.
        host: what to show, and how often to save.

    Raises:
        SystemExit: the run did not reach its end.
    """
    host.console.print(f"run directory: {directory.root}", soft_wrap=True, highlight=False)
    for line in durations.before(run.settings, run.program):
        host.console.print(line, soft_wrap=True, highlight=False)
    try:
        outcome = train(directory, run.settings, run.program, host)
        if outcome.finished:
            film = run.film if outcome.trained and not outcome.signal else None
            show_figures(directory, host.trackers, film)
    except NonFiniteLossError as error:
        cli.fail(str(error), NOT_FINITE)
    except KeyboardInterrupt:
        again = how_to_continue(experiment, directory, host.command)
        cli.fail(f"interrupted; {again}", INTERRUPTED)
    finally:
        if host.trackers:
            host.trackers.close()
    line = closing_line(experiment, directory, outcome, host.command)
    host.console.print(line, soft_wrap=True, highlight=False, markup=False)
    if not outcome.finished:
        end_stopped(outcome.signal)
