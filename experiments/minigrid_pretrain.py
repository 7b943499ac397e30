"""Pre-trains on MiniGrid: `python -m experiments.minigrid_pretrain --preset laptop`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from cbet_jax.config import SettingsError, TrainSettings
from cbet_jax.run_directory import (
    RunDirectory,
    RunDirectoryError,
    RunSettings,
    first_difference,
    to_json,
)
from cbet_jax.runner import HostSettings, NonFiniteLossError, Outcome, train
from cbet_jax.train import Program, make_program
from envs.minigrid import make_world
from envs.registry import UnknownEnvironment
from experiments import cli

PROGRAM = "python -m experiments.minigrid_pretrain"
EVALUATE = "python -m experiments.minigrid_evaluate"
RUNS = Path("runs")
STOPPED = 128  # exit status, plus the number of the signal
NOT_FINITE = 1  # exit status


@dataclass(frozen=True)
class Options:
    """Pre-trains agents on MiniGrid worlds with intrinsic rewards alone."""

    train: Annotated[TrainSettings, tyro.conf.arg(name="")]
    envs: tuple[str, ...]  # worlds, cycled episode by episode
    seeds: int  # agents trained side by side
    first_seed: int  # the seeds are first_seed, first_seed + 1, ...
    chunk: int  # iterations between two looks of the host
    preset: str | None = None  # paper (default), laptop or smoke
    out: Path | None = None  # the run's directory (default: a new one in runs/)
    resume: bool = False  # go on with the run in --out
    checkpoint_seconds: float = 120.0  # at least this long between two checkpoints

    @property
    def settings(self) -> RunSettings:
        """What decides the numbers."""
        return RunSettings(self.train, self.envs, self.seeds, self.first_seed, self.chunk)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the experiment that the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Console()
    with cli.user_errors(UnknownEnvironment):
        options = read(arguments)
        settings = options.settings
        program = build(settings)
        directory = open_directory(options, settings)
        console.print(f"run directory: {directory.root}", soft_wrap=True, highlight=False)
        host = HostSettings(console, tuple(arguments), options.checkpoint_seconds)
        try:
            outcome = train(directory, settings, program, host)
        except NonFiniteLossError as error:
            cli.fail(str(error), NOT_FINITE)
    report(outcome, directory, console)


def read(arguments: Sequence[str]) -> Options:
    """Reads the command line; what it does not say comes from the preset or the resumed run."""
    first = cli.first(arguments)
    stored = stored_settings(first)
    base = cli.preset(first.preset) if stored is None or first.preset else stored
    defaults = Options(base.train, base.environments, base.seeds, base.first_seed, base.chunk)
    options: Options = cli.parse(Options, arguments, default=defaults, prog=PROGRAM)
    if stored:
        difference = first_difference(to_json(stored), to_json(options.settings))
        if difference:
            raise RunDirectoryError(f"{options.out} was started with other settings: {difference}")
    return options


def stored_settings(first: cli.First) -> RunSettings | None:
    """Returns the settings of the run to resume, None for a new run."""
    if not first.resume:
        return None
    if first.out is None:
        raise SettingsError("--resume needs --out DIR, the run to go on with")
    return RunDirectory(first.out).settings()


def build(settings: RunSettings) -> Program:
    """Puts worlds and training together."""
    world = make_world(settings.environments, settings.train.worlds, explore=True)
    return make_program(settings.train, world, settings.seeds, settings.chunk)


def open_directory(options: Options, settings: RunSettings) -> RunDirectory:
    """Returns the run's directory; a new run's is made."""
    name = f"{settings.train.method}-{options.preset or cli.DEFAULT}-{datetime.now():%Y%m%d-%H%M%S}"
    directory = RunDirectory(options.out or RUNS / name)
    if not options.resume:
        directory.create(settings)
    return directory


def report(outcome: Outcome, directory: RunDirectory, console: Console) -> None:
    """Says how the run ended and what to do next; a stopped run ends the process."""
    if outcome.finished:
        how = "finished" if outcome.trained else "had already finished"
        line = f"{how} at {outcome.frames:,} frames; next: {EVALUATE} {directory.root}"
    else:
        again = f"{PROGRAM} --out {directory.root} --resume"
        line = f"stopped and saved at {outcome.frames:,} frames; go on with: {again}"
    console.print(line, soft_wrap=True, highlight=False)
    if not outcome.finished:
        raise SystemExit(STOPPED + outcome.signal)


if __name__ == "__main__":
    main()
