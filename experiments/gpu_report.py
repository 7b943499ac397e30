"""Report how training does on a GPU: `python -m experiments.gpu_report DIR`.

Compares the numbers with the CPU's, measures the cases, counts kernels, and writes to DIR

report.json      all numbers; written again after every case
report.md        the same as a table
trace.json.gz    one iteration of training, for ui.perfetto.dev
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from experiments.benchmarks import gpu_report_measurements, gpu_report_table
from experiments.benchmarks.gpu_report_file import REPORT, TABLE
from experiments.common import cli
from experiments.common.screen import Screen

MODULE = "experiments.gpu_report"
DIFFERS = 1  # exit status
FOLDER = tyro.conf.arg(metavar="DIR", help="a folder without a report")


@dataclass(frozen=True)
class GpuReportOptions:
    """Measure training on this machine's GPU, and compare its numbers with the CPU's."""

    folder: Annotated[Path, tyro.conf.Positional, FOLDER]
    small: bool = False  # try every part with tiny programs, whose speeds mean nothing


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the report that the command line asks for, and print it."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with cli.user_errors():
        options: GpuReportOptions = cli.parse(GpuReportOptions, arguments, MODULE)
        report(options.folder, arguments, Screen(), small=options.small)


def report(folder: Path, arguments: Sequence[str], console: Console, *, small: bool) -> None:
    """Make a report and print it.

    Args:
        folder: to write to.
        arguments: of the command line.
        console: to print to.
        small: whether to take tiny programs, whose speeds mean nothing.

    Raises:
        RunDirectoryError: the folder cannot be used.
        SystemExit: the device does not compute what the CPU does, or they cannot be compared.
    """
    content = gpu_report_measurements.make(folder, arguments, console, small=small)
    table = gpu_report_table.markdown(content)
    console.print(table, soft_wrap=True, highlight=False, markup=False)
    console.print(f"saved: {folder / REPORT}", soft_wrap=True, highlight=False)
    found = content["agreement"].values()
    if not found or not all(comparison.get("agrees") for comparison in found):
        cli.fail(f"the numbers were not found to be the CPU's: see {folder / TABLE}", DIFFERS)


if __name__ == "__main__":
    main()
