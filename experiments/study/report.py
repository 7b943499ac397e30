"""Write the page about a study from its table of results."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.reports import page
from experiments.study import pictures, tables
from experiments.study.contents import INTERACTIONS, SUCCESS, TABLES
from experiments.study.findings import Findings
from experiments.study.results import Result
from experiments.study.tables import Table

MEASURED = (
    "Actions are sampled; success ends the episode. Brackets hold 95 % intervals over seeds: "
    "Student's t of a mean, Welch's of a difference. A table compares its methods after equal "
    "frames: the most after which all of them that were run have been evaluated. Curves are means "
    "over a sliding window of 300 x 3,200 frames of 50 M, scaled to the budget. Where a task was "
    "ended early, its last value goes on to the end of the task's longest run, in pictures dotted. "
    "Diamonds are the numbers that the paper prints; what it only draws has none. Intrinsic "
    "rewards of different methods have different scales."
)
FIGURES = "-figures"  # the end of the pictures' folder, after the page's name
Section = tuple[str, pictures.Pictures, list[Table]]  # its title, and what is in it


def write(path: Path, title: str, results: Sequence[Result], *, again: bool = False) -> list[Path]:
    """Write the page, and draw its pictures into a folder beside it, in place of any there.

    Returns:
        The page and the pictures.
    """
    found, drawn = Findings(results), []
    parts = [page.heading(title, 1), page.paragraph(_asked(found)), page.paragraph(MEASURED)]
    parts += [page.paragraph(line) for line in tables.diverged(found)]
    for heading, images, shown in sections(found, path.with_name(path.stem + FIGURES)):
        if images or any(table.rows for table in shown):
            parts.append(page.heading(heading))
        for image in images:
            parts.append(page.picture(*[str(image.relative_to(path.parent))] * 2))
            drawn.append(image)
        parts += [page.table(*table) for table in shown if table.rows]
    page.write(path, title, "\n".join(parts), again=again)
    return [path, *drawn]


def sections(found: Findings, folder: Path) -> Iterator[Section]:
    """Yield the parts of the page, and draw their pictures into a folder."""
    for table in TABLES:
        ran = any(found.evaluated_at(s, m) for s in table.setups for m in table.methods)
        if ran or any(key[2] in table.methods for key in found.diverged):
            title = f"{table.title} ({table.source})"
            yield title, pictures.of_paper(folder, found, table), [tables.of_paper(table, found)]
    yield "Every evaluation", pictures.frames(folder, found), [tables.evaluations(found)]
    for setup in found.setups():
        shown = [tables.worlds(found, setup, metric) for metric in (INTERACTIONS, SUCCESS)]
        yield f"Each world, after {setup}", pictures.worlds(folder, found, setup), shown
    drawn = pictures.pretraining(folder, found)
    yield "While pre-training (Figures 23, 25, 27 and 21)", drawn, [tables.pretraining(found)]
    drawn = [*pictures.tasks(folder, found), *pictures.profiles(folder, found)]
    yield "Learning tasks (Figure 8)", drawn, [tables.aggregates(found), tables.tasks(found)]


def _asked(found: Findings) -> str:
    """Return what the study was asked for."""
    chosen = {k: v for k, v in found.asked.items() if v > 0 or k == "first_seed"}
    said = ", ".join(f"{name.replace('_', ' ')} {value:,.10g}" for name, value in chosen.items())
    return f"Preset {found.preset}: {said}. The paper: 50,000,000 frames, 7 seeds."
