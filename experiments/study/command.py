"""The command line of a study: its plan, its runs, its report."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from cbet_jax.runs.atomic_write import delete_left_over
from cbet_jax.runs.devices import use_cpu
from cbet_jax.runs.directory import holds_no
from cbet_jax.runs.host_loop import NonFiniteLossError
from envs.registry import UnknownEnvironment
from experiments.common import cli, invocation
from experiments.common.endings import NOT_FINITE
from experiments.common.screen import Screen
from experiments.study import plan as plans
from experiments.study import plan_summary, report, results
from experiments.study.execute import ENDINGS, Ended, Host, execute
from experiments.study.options import (
    RECORD,
    Study,
    StudyOptions,
    open_study,
    read,
    stored_study,
)
from experiments.study.plan import plan

RESULTS, REPORT = "results.csv", "report.html"


def main(study: Study, arguments: Sequence[str]) -> None:
    """Do what the command line asks for."""
    console = Screen()
    with cli.user_errors(UnknownEnvironment):
        options, root = read(study, arguments)
        if options.plan:
            show_plan(options, root, console)
        elif options.cluster == "slurm" and not options.report_only:
            submit(study, options, root, arguments, console)
        else:
            ended: Ended = {}
            if not options.report_only:
                ended = run_jobs(options, root, arguments, console)
            elif stored_study(root) is None:
                raise holds_no("study", root / RECORD)
            found = results.collect(root, options.settings)
            kept = results.write_again(root / RESULTS, found)
            if kept:
                line = f"{kept} is the earlier {RESULTS}: it has results of which no files are left"
                console.print(line, soft_wrap=True, highlight=False)
            path, *pictures = report.write(root / REPORT, f"Study: {root.name}", found)
            line = f"report: {path}, with {len(pictures)} pictures"
            console.print(line, soft_wrap=True, highlight=False)
            if ended:
                names = ", ".join(f"{path} {how}" for path, how in ended.items())
                diverged = ENDINGS[NonFiniteLossError] in ended.values()
                status = NOT_FINITE if diverged else cli.BAD_INPUT
                cli.fail(f"{names}; all that does not need that is done", status)


def run_jobs(
    options: StudyOptions, root: Path, arguments: Sequence[str], console: Console
) -> Ended:
    """Do all jobs that are not done.

    Args:
        options: of the command line.
        root: the study's directory.
        arguments: words of the command line.
        console: to print to.

    Returns:
        The runs that ended before their end, and why.
    """
    jobs = plan(root, options.settings, options.selection)
    if all(job.source for job in jobs) and stored_study(root) is None:
        raise holds_no("study", root / RECORD)  # and so no policies, which all jobs need
    open_study(root, options.settings)
    use_cpu()
    delete_left_over(root, below=True)
    tell_left_out(options, console)
    host = Host(console, tuple(arguments), options.checkpoint_seconds)
    return execute(jobs, options.settings, host)


def show_plan(options: StudyOptions, root: Path, console: Console) -> None:
    """Print what would be done.

    Args:
        options: of the command line.
        root: the study's directory.
        console: to print to.
    """
    use_cpu()  # speeds are those of the devices that runs have
    jobs = plan(root, options.settings, options.selection)
    plan_summary.show(root, options.settings, jobs, console, options.verbose)
    tell_left_out(options, console)
    if options.cluster == "slurm":
        from experiments.sweeps import command as sweep

        sweep.show_header(root, options.slurm, console)


def tell_left_out(options: StudyOptions, console: Console) -> None:
    """Say that tasks are left out, if they are asked for before the end of pre-training."""
    stages = {plans.TRANSFER, plans.TABULA_RASA}.intersection(options.stages)
    if options.until is not None and options.tasks and stages:
        line = "no tasks now: they are learnt after the end of pre-training, without --until"
        console.print(line, soft_wrap=True, highlight=False)


def submit(
    study: Study,
    options: StudyOptions,
    root: Path,
    arguments: Sequence[str],
    console: Console,
) -> None:
    """Submit the command to SLURM, several times: its processes share the runs.

    Args:
        study: what the command runs by default.
        options: its command line.
        root: the study's directory.
        arguments: words of its command line.
        console: to print to.

    Raises:
        SettingsError: submitit is not installed, or there is no SLURM here.
    """
    from experiments.sweeps import command as sweep

    jobs = plan(root, options.settings, options.selection)
    queue = sweep.open_slurm(root, options.slurm)
    open_study(root, options.settings)
    pretrain = plans.PRETRAIN in options.stages
    shared = (plans.PRETRAIN,) if pretrain else (plans.TRANSFER, plans.TABULA_RASA)
    number = options.parallel or max(1, sum(job.stage in shared and not job.done for job in jobs))
    words = [*arguments, "--out", str(root.absolute()), "--cluster", "local"]
    submitted = [queue.submit_command(study.program, words) for _ in range(number)]
    again = invocation.command_line(study.program, "--out", root, "--plan")
    line = f"submitted {number} jobs ({', '.join(submitted)}); how far they are: {again}"
    console.print(line, soft_wrap=True, highlight=False)
