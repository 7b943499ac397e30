"""The command line of a study: its plan, its runs, its report."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from cbet_jax.runs.directory import create_with_record, holds_no
from envs.errors import UnknownEnvironment
from experiments.common import cli
from experiments.common.screen import Screen, say
from experiments.study import plan as plans
from experiments.study import report, results
from experiments.study.options import RECORD, Study, StudyOptions, read, stored_study
from experiments.study.plan import plan
from experiments.sweeps.jobs import Job, check
from experiments.sweeps.plans import carry_out, fail_if_any, open_queue, show

RESULTS, REPORT = "results.csv", "report.html"


def main(study: Study, arguments: Sequence[str] | None = None) -> None:
    """Run or report a study as the command line asks (None: `sys.argv`)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors(UnknownEnvironment):
        options, root = read(study, arguments)
        jobs = plan(root, options.settings, options)
        failed: dict[str, str] = {}
        if not options.report_only:
            jobs = check(jobs)
            tell_left_out(options, console)
            if options.plan:
                show(jobs, console)
                return
            failed = run(options, root, jobs, console)
        elif stored_study(root) is None:
            raise holds_no("study", root / RECORD)
        found = results.collect(root, options.settings)
        kept = results.write_again(root / RESULTS, found)
        if kept:
            say(console, f"{kept} is the earlier {RESULTS}: some of its results have no files left")
        path, *pictures = report.write(root / REPORT, f"Study: {root.name}", found, again=True)
        say(console, f"report: {path}, with {len(pictures)} picture{'s' * (len(pictures) != 1)}")
        fail_if_any(failed, jobs)


def run(options: StudyOptions, root: Path, jobs: Sequence[Job], console: Console) -> dict[str, str]:
    """Do all unfinished jobs, and return the names of failed ones with their reasons.

    Raises:
        RunDirectoryError: all jobs need policies, and the directory holds no study.
    """
    if all(job.needs for job in jobs) and stored_study(root) is None:
        raise holds_no("study", root / RECORD)
    queue = open_queue(root, options)
    if not (root / RECORD).exists():
        create_with_record(root / RECORD, "study", asdict(options.settings))
    return carry_out(root, jobs, queue, options, console)


def tell_left_out(options: StudyOptions, console: Console) -> None:
    """Say that tasks are left out, if they are asked for before the end of pre-training."""
    stages = {plans.TRANSFER, plans.TABULA_RASA}.intersection(options.stages)
    if options.until is not None and options.tasks and stages:
        say(console, "no tasks now: they are learnt after the end of pre-training, without --until")
