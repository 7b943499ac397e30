"""Write the results of the studies as one page of HTML: `python -m experiments.results_page`.

The page is `experiments/study/RESULTS.md` in one file: its pictures are inside, and a table is
sorted by the column whose head is clicked.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cbet_jax.runs.directory import RunDirectoryError
from experiments.common import cli
from experiments.common.outputs import RUNS, new_page
from experiments.common.screen import Screen
from experiments.reports import page

MODULE = "experiments.results_page"
SOURCE = Path(__file__).with_name("study") / "RESULTS.md"
LINK = re.compile(r'(src|href)="(?!#|[a-z]+:)([^"#]+)')  # to a file of this repository


@dataclass(frozen=True)
class ResultsPageOptions:
    """Write the results of the studies as one page of HTML."""

    out: Path | None = None  # the page, a new .html (default: runs/results.html)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page that the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors():
        options: ResultsPageOptions = cli.parse(ResultsPageOptions, arguments, MODULE)
        path = new_page(options.out, RUNS / "results.html")
        if not SOURCE.is_file():
            raise RunDirectoryError(f"{SOURCE} is missing: results are part of a git clone only")
        text = SOURCE.read_text()
        title = text.partition("\n")[0].lstrip("# ")
        path.parent.mkdir(parents=True, exist_ok=True)
        page.write(path, title, moved(page.from_markdown(text), SOURCE.parent, path.parent))
    console.print(f"saved: {path}", soft_wrap=True, highlight=False)


def moved(body: str, source: Path, folder: Path) -> str:
    """Return a page's content with its links as they are from another folder.

    Args:
        body: HTML.
        source: the folder that links are relative to.
        folder: the folder that they will be relative to.
    """

    def link(found: re.Match[str]) -> str:
        target = (source / found[2]).resolve()
        return f'{found[1]}="{target.relative_to(folder.resolve(), walk_up=True)}'

    return LINK.sub(link, body)


if __name__ == "__main__":
    main()
