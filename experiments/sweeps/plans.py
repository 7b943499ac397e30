"""Print and carry out a plan of jobs: the part that sweeps and studies share."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from cbet_jax.config import SettingsError
from cbet_jax.runs.atomic_write import delete_left_over
from cbet_jax.runs.signals import stop_on_signals
from cbet_jax.settings.ranges import PositiveInt, Processes, check_fields
from experiments.common import cli, interrupts, invocation
from experiments.common.screen import say
from experiments.sweeps.execute import Executor
from experiments.sweeps.jobs import Job
from experiments.sweeps.queues import LocalQueue, Queue, refuse_too_few_gpus

JOBS = "jobs"  # folder of the jobs' output and locks, and of what submitit keeps


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """How a plan is carried out."""

    cluster: Literal["local", "slurm"] = "local"  # where the jobs run
    #: processes at once (None: one on this machine, all with SLURM); on this machine each has its
    #: own cores, and its own GPUs if CUDA_VISIBLE_DEVICES names several
    parallel: Processes | None = None
    tries: PositiveInt = 10  # how often a job is submitted that was lost on its way
    #: parameters of each job, as submitit calls them: partition, time (minutes), gpus_per_node,
    #: mem, account
    slurm: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...")] = ()
    plan: bool = False  # print the commands and what is left of them, and do nothing

    def __post_init__(self) -> None:
        check_fields(self)
        if self.slurm and self.cluster != "slurm":
            raise SettingsError("slurm is for --cluster slurm")
        if self.cluster == "local":
            refuse_too_few_gpus(self.parallel or 1)


def open_queue(root: Path, options: PlanOptions) -> Queue:
    """Return the queue that the options choose, or refuse one that is not installed."""
    folder = (root / JOBS).absolute()
    if options.cluster == "local":
        return LocalQueue(folder)
    try:
        from experiments.sweeps.slurm import SlurmQueue
    except ModuleNotFoundError as error:
        if error.name != "submitit":
            raise
        raise SettingsError(
            "--cluster slurm needs submitit: `uv sync --extra slurm`, or "
            "`pip install 'cbet-jax[slurm]'`"
        ) from None
    return SlurmQueue(folder, _parameters(options.slurm))


def _parameters(words: Sequence[str]) -> dict[str, Any]:
    """Return submitit's parameters: numbers, truth values, lists of words or text."""
    parameters: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise SettingsError(f"slurm takes NAME=VALUE ..., not {word!r}")
        truths: dict[str, Any] = {"true": True, "false": False}
        parameters[name] = int(value) if value.isdecimal() else truths.get(value.lower(), value)
        if name in ("setup", "srun_args"):
            parameters[name] = [value] if name == "setup" else value.split()
    return parameters


def carry_out(
    root: Path,
    jobs: Collection[Job],
    queue: Queue,
    options: PlanOptions,
    console: Console,
    together: int | None = None,
) -> dict[str, str]:
    """Do all unfinished jobs of a plan, at most `together` runs in one program.

    Returns:
        The names of failed jobs, with their reasons.
    """
    for folder in (root, *(job.root for job in jobs)):
        delete_left_over(folder)
    show_left(jobs, console)
    executor = Executor(
        *(jobs, queue, root / JOBS, console),
        parallel=options.parallel,
        together=together,
        tries=options.tries,
    )
    with stop_on_signals() as stop:
        executor.run(stop)
    if stop.signal:
        where = "training is saved" if options.cluster == "local" else "the jobs stay in the queue"
        console.print(f"stopped; {where}, and the same command continues", highlight=False)
    interrupts.end_if_stopped(stop.signal)
    return executor.failed


def fail_if_any(failed: dict[str, str], jobs: Collection[Job]) -> None:
    """End the process if jobs have failed."""
    if failed:
        name, why = next(iter(failed.items()))
        cli.fail(f"{len(failed)} of {len(jobs)} jobs have failed, first {name}: {why}", cli.FAILED)


def show(jobs: Collection[Job], console: Console) -> None:
    """Print a command for each job, which can be pasted, its progress, and what is left."""
    for job in jobs:
        words = job.continuing if job.config.exists() else job.beginning
        command = invocation.command_line(job.module, *words)
        say(console, f"{command}  # {job.state}")
    show_left(jobs, console)


def show_left(jobs: Collection[Job], console: Console) -> None:
    """Print how many jobs and frames are left to do."""
    left = [job for job in jobs if not job.done]
    all_frames = sum(job.frames * job.seeds for job in jobs)
    frames = sum(max(job.frames - job.reached, 0) * job.seeds for job in left)
    line = f"{len(left)} of {len(jobs)} jobs left, {frames:,} of {all_frames:,} frames"
    console.print(line, highlight=False)
