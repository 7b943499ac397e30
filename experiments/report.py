"""Write one page of HTML about runs, or about a study: `python -m experiments.report PATH ...`.

About runs it has the learning curves, how they end and how far they are apart, the newest
evaluation and film, the settings in which they differ, and what they ran on. About a study it has
a table for each of the paper's, from the study's directory or its results.csv.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cbet_jax.config import SettingsError
from experiments.common import cli
from experiments.common.outputs import RUNS, check_page, results_folder, write_new
from experiments.common.screen import Screen, say
from experiments.reports import page, run_page, runs
from experiments.study import report as study_report
from experiments.study import results
from experiments.study.options import stored_study
from experiments.study.results import Result

MODULE = "experiments.report"


@dataclass(frozen=True)
class ReportOptions:
    """Write one page about runs beside each other, or about a study."""

    #: [NAME=]RUN ..., or a study's directory, or tables of studies (results.csv), read as one
    paths: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATH ...")]
    #: the page, a new .html (None: report.html in the folder that is named, or in runs/)
    out: Path | None = None


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page that the command line asks for."""
    console = Screen()
    with cli.user_errors():
        options: ReportOptions = cli.parse(ReportOptions, arguments, MODULE)
        if not options.paths:
            raise SettingsError("give runs, a study or its results.csv: PATH ...")
        single = len(options.paths) == 1 and Path(options.paths[0]).is_dir()
        folder = Path(options.paths[0]) if single else RUNS
        study = read_study(options.paths)
        endings = [study_report.FIGURES] if study else []
        check_page(options.out, *endings)
        found = [] if study else runs.read(options.paths)
        title = "Report: " + (", ".join(run.name for run in found) or ", ".join(options.paths))

        def write(path: Path) -> object:
            if study:
                return study_report.write(path, title, study)
            return page.write(path, title, run_page.body(title, found, path.parent))

        wanted = options.out or folder / "report.html"
        results_folder(options.out.parent if options.out else None, folder, "file")
        path = write_new(wanted, write, *endings)
    say(console, f"saved: {path}")


def read_study(words: Sequence[str]) -> list[Result]:
    """Return the results of a study, or of several tables together; none, where runs are named.

    Raises:
        RunDirectoryError: one cannot be read, or they do not belong together.
    """
    paths = [Path(word) for word in words]
    if all(path.suffix == ".csv" for path in paths):
        return results.read_together(paths)
    settings = stored_study(paths[0]) if len(paths) == 1 else None
    return results.collect(paths[0], settings) if settings else []


if __name__ == "__main__":
    main()
