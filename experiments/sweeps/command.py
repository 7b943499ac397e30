"""The command line of a sweep."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.console import Console

from cbet_jax.config import SettingsError
from cbet_jax.runs.atomic_write import delete_left_over
from cbet_jax.runs.directory import (
    RunDirectory,
    RunDirectoryError,
    refuse_other_content,
    write_record,
)
from cbet_jax.runs.signals import stop_on_signals
from cbet_jax.setting_types import PositiveInt, Processes, check_fields
from envs.registry import UnknownEnvironment
from experiments.common import cli, endings
from experiments.common.outputs import RUNS
from experiments.common.screen import Screen
from experiments.sweeps import gpus, results
from experiments.sweeps.plan import COMMANDS, SweepGroup, SweepJob, check, groups, plan, read_grid

if TYPE_CHECKING:
    from types import ModuleType

    from experiments.sweeps.jobs import Queue
    from experiments.sweeps.slurm import SlurmQueue

MODULE = "experiments.sweep"
RECORD, TABLE, JOBS = "sweep.json", "results.csv", "jobs"


@dataclass(frozen=True)
class SweepOptions:
    """Run a training command with every combination of some settings.

    All options that are not listed here are the training command's, and the same for all runs.
    """

    #: the settings that differ, as the training command calls them; a value of several words is
    #: quoted
    grid: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SETTING=VALUE,VALUE ...")] = ()
    command: str = "pretrain"  # pretrain, tabula_rasa, transfer or habitat
    out: Path = RUNS / "sweep"  # the sweep's directory, new or begun
    cluster: Literal["local", "slurm"] = "local"  # where the runs are made
    #: programs in the queue at once (default: one here, all with SLURM)
    parallel: Processes | None = None
    #: runs that one program trains, at most (default: all that differ in numbers alone)
    together: PositiveInt | None = None
    tries: PositiveInt = 10  # how often a program is submitted that was lost on its way
    #: of each job, as submitit calls them: partition, time (minutes), gpus_per_node, mem, account
    slurm: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...")] = ()
    plan: bool = False  # print what would be run, and do nothing

    def __post_init__(self) -> None:
        if self.command not in COMMANDS:
            raise SettingsError(f"command must be {', '.join(COMMANDS)}, not {self.command!r}")
        check_fields(self)
        if self.slurm and self.cluster != "slurm":
            raise SettingsError("slurm is for --cluster slurm")
        if self.cluster == "local":
            gpus.refuse_too_few(self.parallel or 1)


def main(arguments: Sequence[str]) -> None:
    """Do what the command line asks for."""
    console = Screen()
    with cli.user_errors(UnknownEnvironment):
        options, fixed = cli.parse(SweepOptions, arguments, MODULE, return_unknown_args=True)
        for word in fixed:
            if word in ("--resume", "--no-resume"):
                raise SettingsError(f"a sweep says {word} itself")
        grid = read_grid(options.grid)
        planned = plan(options.out, options.command, grid, fixed)
        refuse_other_sweep(options)
        checked = check(planned)
        jobs = list(checked)
        left = {job: asked for job, asked in checked.items() if not job.done}
        todo = groups(left, options.together)
        if options.plan:
            show(jobs, todo, console)
            if options.cluster == "slurm":
                show_header(options.out, options.slurm, console)
            return
        queue = open_queue(options)
        open_sweep(options)
        with RunDirectory(options.out).lock():
            delete_left_over(options.out, below=True)
            console.print(f"{len(jobs)} runs, {len(jobs) - len(left)} of them done")
            failed = run(todo, queue, options, console)
            rows = results.collect(jobs)
            results.write(options.out / TABLE, rows)
        results.show(rows, console)
        console.print(f"results: {options.out / TABLE}", soft_wrap=True, highlight=False)
    if failed:
        cli.fail(f"{len(failed)} of {len(jobs)} runs have failed, first {failed[0]}", cli.FAILED)


def open_queue(options: SweepOptions) -> "Queue":
    """Return where the jobs go.

    Raises:
        SettingsError: of a cluster, submitit is not installed, or there is no such queue.
    """
    from experiments.sweeps.jobs import LocalQueue

    if options.cluster == "slurm":
        return open_slurm(options.out, options.slurm)
    return LocalQueue((options.out / JOBS).absolute())


def open_slurm(root: Path, words: Sequence[str]) -> "SlurmQueue":
    """Return the queue of the cluster.

    Args:
        root: the directory of the sweep or study.
        words: parameters of a job, NAME=VALUE.

    Raises:
        SettingsError: submitit is not installed, or there is no such queue.
    """
    try:
        return slurm().SlurmQueue((root / JOBS).absolute(), _parameters(words))
    except (RuntimeError, ValueError) as error:
        raise SettingsError(str(error)) from None


def show_header(root: Path, words: Sequence[str], console: Console) -> None:
    """Print what SLURM would be asked for.

    Args:
        root: the directory of the sweep or study.
        words: parameters of a job, NAME=VALUE.
        console: to print to.

    Raises:
        SettingsError: submitit is not installed, or has no such parameter.
    """
    try:
        lines = slurm().header((root / JOBS).absolute(), _parameters(words))
    except ValueError as error:
        raise SettingsError(str(error)) from None
    console.print("each job asks SLURM for:", *lines, sep="\n", soft_wrap=True, highlight=False)


def slurm() -> "ModuleType":
    """Return the module of a cluster's queue.

    Raises:
        SettingsError: submitit is not installed.
    """
    try:
        from experiments.sweeps import slurm
    except ModuleNotFoundError as error:
        if error.name != "submitit":
            raise
        raise SettingsError(
            "--cluster slurm needs submitit: `uv sync --extra slurm`, or "
            "`pip install 'cbet-jax[slurm]'`"
        ) from None
    return slurm


def run(
    todo: Sequence[SweepGroup], queue: "Queue", options: SweepOptions, console: Console
) -> list[SweepJob]:
    """Run all groups, and return the runs that failed.

    Raises:
        SystemExit: a signal asked to stop.
    """
    from experiments.sweeps.execute import Sweep

    sweep = Sweep(todo, queue, options.parallel, options.tries, console)
    with stop_on_signals() as stop:
        sweep.run(stop)
    if stop.signal:
        where = "the jobs stay in the queue" if options.cluster == "slurm" else "all is saved"
        console.print(f"stopped; {where}, and the same command continues", highlight=False)
        endings.end_stopped(stop.signal)
    return sweep.failed


def refuse_other_sweep(options: SweepOptions) -> None:
    """Check what the sweep's directory holds.

    Raises:
        RunDirectoryError: something else than a sweep over this command.
    """
    root, record = options.out, options.out / RECORD
    refuse_other_content(record, "sweep")
    if not record.exists():
        return
    try:
        command = json.loads(record.read_text())["command"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunDirectoryError(f"{record} cannot be read: {error}") from None
    if command != options.command:
        raise RunDirectoryError(f"{root} is a sweep over {command}, not {options.command}")


def open_sweep(options: SweepOptions) -> None:
    """Make the sweep's directory, unless it is there.

    Raises:
        RunDirectoryError: it cannot be made.
    """
    write_record(options.out / RECORD, {"command": options.command})


def show(jobs: Sequence[SweepJob], todo: Sequence[SweepGroup], console: Console) -> None:
    """Print the plan, how much of it is done, and in how many programs the rest is trained."""
    for job in jobs:
        state = "done" if job.done else "begun" if job.begun else "to do"
        console.print(f"{state:>6}  {job}", soft_wrap=True, highlight=False)
    left = sum(len(group.jobs) for group in todo)
    console.print(f"{left} of {len(jobs)} runs left, in {len(todo)} programs", highlight=False)


def _parameters(words: Sequence[str]) -> dict[str, str | int]:
    parameters: dict[str, str | int] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise SettingsError(f"slurm takes NAME=VALUE ..., not {word!r}")
        parameters[name] = int(value) if value.isdecimal() else value
    return parameters
