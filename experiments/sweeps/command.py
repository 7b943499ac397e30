"""The command line of a sweep."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from cbet_jax.config import SettingsError
from cbet_jax.runs.directory import RunDirectoryError, create_with_record, refuse_other_content
from cbet_jax.runs.reading import read_json
from cbet_jax.settings.ranges import PositiveInt
from envs.errors import UnknownEnvironment
from experiments.common import cli
from experiments.common.outputs import RUNS
from experiments.common.screen import Screen, say
from experiments.sweeps import results
from experiments.sweeps.grid import plan, read_grid
from experiments.sweeps.jobs import COMMANDS, Job, check
from experiments.sweeps.plans import PlanOptions, carry_out, fail_if_any, open_queue, show

MODULE = "experiments.sweep"
RECORD, TABLE = "sweep.json", "results.csv"


@dataclass(frozen=True, kw_only=True)
class SweepOptions(PlanOptions):
    """Run a training command with every combination of some settings.

    All options that are not listed here are the training command's, and the same for all runs.
    """

    #: the settings that differ, as the training command calls them; a value of several words is
    #: quoted
    grid: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SETTING=VALUE,VALUE ...")] = ()
    command: str = "pretrain"  # pretrain, tabula_rasa, transfer or habitat
    out: Path = RUNS / "sweep"  # the sweep's directory, new or begun
    #: most runs that one program trains (None: all that differ only in numbers)
    together: PositiveInt | None = None

    def __post_init__(self) -> None:
        if self.command not in COMMANDS:
            raise SettingsError(f"command must be {', '.join(COMMANDS)}, not {self.command!r}")
        super().__post_init__()


def main(arguments: Sequence[str]) -> None:
    """Do what the command line asks for."""
    console = Screen()
    with cli.user_errors(UnknownEnvironment):
        options, fixed = cli.parse(SweepOptions, arguments, MODULE, return_unknown_args=True)
        for word in fixed:
            if word in ("--resume", "--no-resume"):
                raise SettingsError(f"a sweep says {word} itself")
        planned = plan(options.out, options.command, read_grid(options.grid), fixed)
        refuse_other_sweep(options)
        with console.status(f"checking {len(planned):,} runs"):
            jobs = check(planned)
        refuse_same(jobs)
        if options.plan:
            show(jobs, console)
            return
        queue = open_queue(options.out, options)
        create_with_record(options.out / RECORD, "sweep", {"command": options.command})
        failed = carry_out(options.out, jobs, queue, options, console, options.together)
        rows = results.collect(dict(zip(planned.values(), jobs, strict=True)))
        results.write(options.out / TABLE, rows)
        results.show(rows, console)
        say(console, f"results: {options.out / TABLE}")
        fail_if_any(failed, jobs)


def refuse_same(jobs: Iterable[Job]) -> None:
    """Refuse a run that would be trained twice, such as one of 1e-3 and one of 0.001."""
    names: dict[Any, str] = {}
    for job in jobs:
        if (other := names.setdefault(job.asked, job.name)) != job.name:
            raise SettingsError(f"{other} and {job.name} are one run: its settings are equal")


def refuse_other_sweep(options: SweepOptions) -> None:
    """Check what the sweep's directory holds.

    Raises:
        RunDirectoryError: something else than a sweep over this command.
    """
    root, record = options.out, options.out / RECORD
    refuse_other_content(record, "sweep")
    if not record.exists():
        return
    command = read_json(record).get("command")
    if command != options.command:
        raise RunDirectoryError(f"{root} is a sweep over {command}, not {options.command}")
