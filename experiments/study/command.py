"""The command line of a study: its plan, its runs, its report."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from cbet_jax.config import SettingsError
from cbet_jax.runs.atomic_write import delete_left_over
from cbet_jax.runs.devices import use_cpu
from cbet_jax.runs.directory import RunDirectoryError, holds_no
from cbet_jax.runs.train_loop import NonFiniteLossError
from envs.registry import UnknownEnvironment
from experiments.common import cli, invocation
from experiments.common.endings import NOT_FINITE
from experiments.common.screen import Screen
from experiments.study import plan as plans
from experiments.study import plan_summary, report, results
from experiments.study.contents import RANDOM
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
from experiments.study.results import Result

RESULTS = "results.csv"


def main(study: Study, arguments: Sequence[str]) -> None:
    """Do what the command line asks for."""
    console = Screen()
    with cli.user_errors(UnknownEnvironment):
        options, root = read(study, arguments)
        if options.results:
            redraw(study, options, console)
        elif options.plan:
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
            tell(report.write(root, study.report, study.contents, found), console)
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


def redraw(study: Study, options: StudyOptions, console: Console) -> None:
    """Draw one report of the results of one or several studies; of several, write one table.

    Args:
        study: what the command runs by default.
        options: name the tables of results, the report's directory, and what is reported.
        console: to print to.

    Raises:
        SettingsError: no directory is named. RunDirectoryError: a table cannot be read, two have
            different values of one number, or the directory holds something else than a report, or
            one of the tables.
    """
    root = options.out
    if root is None:
        raise SettingsError("--results needs --out DIR, where the report goes")
    if stored_study(root) is not None:
        raise RunDirectoryError(f"{root} holds a study, which has its own report: choose another")
    table = root / RESULTS  # which is written if there are several
    several = len(options.results) > 1
    found = chosen(study, options, results.read_together(options.results))
    if several and table.exists() and any(map(table.samefile, options.results)):
        raise RunDirectoryError(f"{table} is one of the tables to report: choose another --out")
    earlier = root / f"{study.report}.md"
    ours = earlier.is_file() and earlier.read_text().startswith(f"# {study.contents.title}\n")
    if not ours and (root.is_file() or (root.exists() and any(root.iterdir()))):
        raise RunDirectoryError(f"{root} is not empty and holds no such report: choose another")
    root.mkdir(parents=True, exist_ok=True)
    if several:
        results.write(table, found)
    tell(report.write(root, study.report, study.contents, found), console)


def chosen(study: Study, options: StudyOptions, found: Sequence[Result]) -> list[Result]:
    """Return the results of the methods and setups that are named; of all, if none are."""
    all_methods, all_setups = options.methods == study.methods, options.setups == study.setups
    return [
        row
        for row in found
        if row.stage == results.STUDY
        or (
            (all_methods or row.method in (*options.methods, *RANDOM))
            and (all_setups or row.setup in (*options.setups, ""))
        )
    ]


def tell(files: Sequence[Path], console: Console) -> None:
    """Say where the report is."""
    line = f"report: {files[0]} and .html, with {len(files) - 1} pictures"
    console.print(line, soft_wrap=True, highlight=False)
