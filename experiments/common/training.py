"""The `main` of all training commands, and the record of what differs between them."""

import contextlib
import itertools
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from jax.sharding import Mesh
from rich.console import Console

from cbet_jax.analysis import figures
from cbet_jax.analysis.method_style import plain_name
from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.intrinsic import refuse_unnamed
from cbet_jax.runs import devices, multihost, own_code
from cbet_jax.runs.checkpoint import Loaded, checkpoints
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from cbet_jax.runs.json_files import first_difference, to_json
from cbet_jax.runs.signals import stop_on_signals
from cbet_jax.runs.tracking import Trackers
from cbet_jax.runs.train_loop import (
    HostSettings,
    NonFiniteLossError,
    Outcome,
    Run,
    train,
    train_together,
)
from cbet_jax.train import Program
from envs.habitat.simulator import SimulatorError
from envs.minigrid.generators.own_worlds import refuse_unnamed as refuse_unnamed_worlds
from envs.registry import UnknownEnvironment
from experiments.common import cli, durations, presets
from experiments.common.cli import FirstWords
from experiments.common.outputs import RUNS, unused
from experiments.common.screen import Screen
from experiments.common.training_options import TrainingOptions

AND = "--and"  # between the command lines of runs that one program trains
WATCH = "experiments.watch"  # another command to run next
STOPPED = 128  # exit status, plus the number of the signal
NOT_FINITE = 1  # exit status


def start_from_init(directory: RunDirectory) -> None:
    """Do nothing: the run starts from `program.init`. Only transfer writes a checkpoint first."""


class Opened(NamedTuple):
    """A run that is ready to train, except for its directory."""

    settings: RunSettings
    program: Program
    prefix: str = ""  # before the name of a new run's directory
    begin: Callable[[RunDirectory], None] = start_from_init
    measured: Callable[[], dict[str, Any]] = dict  # what else the manifest records
    film: tuple[str, ...] | None = None  # words of `watch`


@dataclass(frozen=True)
class Experiment[O: TrainingOptions]:
    """What differs between the training commands."""

    module: str  # the command, as `python -m` names it
    stage: str  # of its runs, as `RunSettings.stage` names it
    #: returns the default options: those of `--preset`, or of the run that `--resume` continues
    defaults: Callable[[FirstWords, RunSettings | None], O]
    #: given the options and the stored settings, returns the settings that the user asks for;
    #: they must equal the stored ones
    resumed: Callable[[O, RunSettings], RunSettings]
    #: builds the run (stored settings None: a new run)
    opened: Callable[[O, RunSettings | None, Console], AbstractContextManager[Opened]]
    evaluate: str  # the command to suggest at the end
    #: builds one program for several runs, as their options say; None: each is trained alone
    opened_together: Callable[[Sequence[O], Console], tuple[list[RunSettings], Program]] | None = (
        None
    )
    #: the words of `watch` that film a policy at play when training has ended (None: no film)
    film: Callable[[O], tuple[str, ...] | None] | None = None


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


def read[O: TrainingOptions](
    experiment: Experiment[O], arguments: Sequence[str]
) -> tuple[O, RunSettings | None]:
    """Read the command line. What it leaves out comes from the preset or the resumed run.

    Returns:
        The options, and the settings of the run to resume (None: a new run).

    Raises:
        SettingsError: the command line is invalid.
        RunDirectoryError: the run to resume is missing, of another kind, or has other settings.
    """
    first = cli.first_words(arguments)
    stored = stored_settings(first)
    if stored and stored.stage != experiment.stage:
        raise RunDirectoryError(f"{first.out} is a run of {stored.stage}, not {experiment.stage}")
    defaults = experiment.defaults(first, stored)
    options: O = cli.parse(type(defaults), arguments, experiment.module, default=defaults)
    if stored:
        asked = experiment.resumed(options, stored)
        said = any(word.split("=")[0] == "--frames" for word in arguments)
        if said and asked.train.frames > stored.train.frames:  # the run is made longer
            stored = replace(stored, train=replace(stored.train, frames=asked.train.frames))
        refuse_changed_code(RunDirectory(Path(first.out or "")), stored, asked)
        difference = first_difference(to_json(stored), to_json(asked))
        if difference:
            raise RunDirectoryError(f"{first.out} was started with other settings: {difference}")
    return options, stored


def refuse_changed_code(directory: RunDirectory, stored: RunSettings, asked: RunSettings) -> None:
    """Refuse to continue a run with code that no command line names, or that has changed.

    Args:
        directory: of the run.
        stored: its settings.
        asked: those that the command line asks for.

    Raises:
        SettingsError: it is not named. UnknownEnvironment: a world is not named.
        RunDirectoryError: it has changed.
    """
    refuse_unnamed(asked.train.method)
    pairs = [(stored.train.method, asked.train.method, directory.method)]
    if not asked.habitat:
        refuse_unnamed_worlds(asked.environments)
        files = list(dict.fromkeys(filter(None, map(own_code.digest, stored.environments))))
        pairs += [
            (old, new, directory.world(1 + files.index(own_code.digest(old))))
            for old, new in zip(stored.environments, asked.environments, strict=False)
            if own_code.digest(old)
        ]
    for old, new, kept in pairs:
        name = own_code.plain(old)
        if own_code.is_own(old) and old != new and name == own_code.plain(new):
            raise RunDirectoryError(
                f"{name.partition(':')[0]} has changed since {directory.root} was begun; the run's "
                f"own copy is {kept}"
            )


def stored_settings(first: FirstWords) -> RunSettings | None:
    """Return the settings of the run to resume, None for a new run.

    Raises:
        SettingsError: no directory is named.
        RunDirectoryError: there is no run in it.
    """
    if not first.resume:
        return None
    if first.out is None:
        raise SettingsError("--resume needs --out DIR, the run to continue")
    return RunDirectory(first.out).settings()


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
        SystemExit: a signal asked to stop.
    """
    assert experiment.opened_together is not None
    settings, program = experiment.opened_together([run.options for run in group], console)
    runs = []
    for asked, one in zip(group, settings, strict=True):
        directory = open_directory(asked.options, Opened(one, program))
        trackers = make_trackers(asked.options, directory, one, console)
        runs.append(Run(directory, one, trackers, asked.words))
    first = group[0].options
    host = HostSettings(console, checkpoint_seconds=first.checkpoint_seconds, keep_at=first.keep_at)
    console.print(f"{len(runs)} runs in one program", highlight=False)
    outcomes = train_together(runs, program, host)
    troubles = []
    for run, outcome in zip(runs, outcomes, strict=True):
        if outcome.finished:
            show_figures(run.directory, run.trackers)
        if run.trackers:
            run.trackers.close()
        if outcome.trouble:
            troubles.append(f"{run.directory.root}: {outcome.trouble}")
        else:
            line = closing_line(experiment, run.directory, outcome)
            console.print(line, soft_wrap=True, highlight=False, markup=False)
    if outcomes[0].signal:
        raise SystemExit(STOPPED + outcomes[0].signal)
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
    return bool(saved) and int(saved[-1].name) >= settings.train.frames


def with_common_checkpoints[O: TrainingOptions](runs: Sequence[Asked[O]]) -> list[list[Asked[O]]]:
    """Return the runs in groups, each of which can continue from one number of frames."""
    groups: list[tuple[set[int], list[Asked[O]]]] = []
    for run in runs:
        saved = checkpoints(RunDirectory(run.root).checkpoints)
        frames = {int(path.name) for path in saved} or {0}
        for common, group in groups:
            if common & frames:
                common &= frames
                group.append(run)
                break
        else:
            groups.append((frames, [run]))
    return [group for _, group in groups]


def lay_out(options: TrainingOptions, console: Console) -> Mesh | None:
    """Connect to the other hosts, and choose the mesh of devices, before any device is used.

    Returns:
        The devices, None for a single one.

    Raises:
        SettingsError: there are not as many as asked for, they do not divide the run, or the
            other hosts are not to be found.
    """
    devices.use_cpu(options.devices)
    if options.distributed:
        multihost.join()
        console.quiet = not multihost.is_first()
    return devices.make_mesh(options.train, options.seeds, options.devices)


def open_directory(options: TrainingOptions, run: Opened) -> RunDirectory:
    """Return the run's directory, and create it for a new run.

    Raises:
        RunDirectoryError: it holds something else.
    """
    preset = options.preset or presets.DEFAULT
    method = run.settings.train.method
    name = f"{run.prefix}{plain_name(method)}-{preset}-{datetime.now():%Y%m%d-%H%M%S}"

    def open_() -> str:
        directory = RunDirectory(options.out or RUNS / name)
        if not options.resume:
            directory.create(run.settings)
            worlds = map(own_code.source, run.settings.environments)
            directory.keep_code(own_code.source(method), filter(None, worlds))
        return str(directory.root)

    return RunDirectory(Path(multihost.on_first(open_)))


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
            show_figures(directory, host.trackers, run.film if outcome.trained else None)
    except NonFiniteLossError as error:
        cli.fail(str(error), NOT_FINITE)
    finally:
        if host.trackers:
            host.trackers.close()
    line = closing_line(experiment, directory, outcome)
    host.console.print(line, soft_wrap=True, highlight=False, markup=False)
    if not outcome.finished:
        raise SystemExit(STOPPED + outcome.signal)


def make_trackers(
    options: TrainingOptions, directory: RunDirectory, settings: RunSettings, console: Console
) -> Trackers:
    """Return what follows the metrics of a run.

    Args:
        options: which trackers.
        directory: of the run.
        settings: of the run.
        console: shows what they have to say.
    """
    say = partial(console.print, soft_wrap=True, highlight=False)
    return Trackers(options.track, directory, settings, say)


def show_figures(
    directory: RunDirectory, trackers: Trackers | None, film: tuple[str, ...] | None = None
) -> None:
    """Draw the learning curves of a run and film its policy, and give them to its trackers.

    Args:
        directory: of the run.
        trackers: of the run.
        film: words of `watch` (None: no film).
    """
    pictures = draw_figures(directory)
    if film is not None:
        pictures += draw_film(directory, film)
    for picture in pictures:
        if trackers:
            trackers.show(picture.stem, picture)


def draw_figures(directory: RunDirectory) -> list[Path]:
    """Draw the learning curves of a run, on the first host, and return the pictures there.

    A first Ctrl-C waits for the end of it: the run is finished and saved.
    """
    pictures: list[Path] = []

    def draw() -> None:
        pictures.extend(figures.draw_learning_curves(directory.metrics, directory.figures))

    with stop_on_signals():
        multihost.on_first(draw)
    return pictures


def draw_film(directory: RunDirectory, words: Sequence[str]) -> list[Path]:
    """Film the policy at play, on the first host, and return the film there.

    A first Ctrl-C waits for the end of it. Without a film the run is as finished as with one.
    """
    from experiments import watch  # imported here: it imports this module

    path = unused(directory.root / "watch.gif")

    def draw() -> None:
        with contextlib.suppress(SystemExit):  # the reason has been printed
            watch.main([str(directory.root), "--out", str(path), *words])

    with stop_on_signals():
        multihost.on_first(draw)
    return [path] if path.exists() else []


def closing_line(experiment: Experiment[Any], directory: RunDirectory, outcome: Outcome) -> str:
    """Return how a run ended, and which commands to run next."""
    if outcome.finished:
        how = "finished" if outcome.trained else "had already finished"
        evaluate = cli.command_line(experiment.evaluate, directory.root)
        watch = cli.command_line(WATCH, directory.root)
        return f"{how} at {outcome.frames:,} frames; next: {evaluate}\nor: {watch}"
    again = cli.command_line(experiment.module, "--out", directory.root, "--resume")
    return f"stopped and saved at {outcome.frames:,} frames; continue with: {again}"


def tell_damaged(loaded: Loaded, console: Console) -> None:
    """Say which checkpoints were passed over because they are damaged."""
    for path in loaded.damaged:
        console.print(f"checkpoint {path} is damaged: using {loaded.path.name}", soft_wrap=True)
