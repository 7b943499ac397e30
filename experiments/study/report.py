"""The report of a study: text and pictures, from nothing but the table of results."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cbet_jax.runs.atomic_write import replacing
from experiments.reports import page
from experiments.study import pictures, tables, tasks, verdict
from experiments.study.commands import made_by
from experiments.study.contents import (
    RANDOM,
    Actions,
    Averages,
)
from experiments.study.estimates import INTERACTIONS, SUCCESS, Findings
from experiments.study.results import STUDY, Result
from experiments.study.tables import Lines


class Contents(NamedTuple):
    """What a report shows."""

    title: str
    tables: tuple[Averages | Actions, ...]
    setups: tuple[str, ...]  # shown in detail: each world, and the curves of pre-training
    methods: tuple[str, ...]  # in these
    tasks: bool = False  # whether it has learning curves of tasks


def write(root: Path, name: str, contents: Contents, results: Sequence[Result]) -> list[Path]:
    """Write the report as Markdown and as a page of HTML, and draw its pictures again.

    Args:
        root: the study's directory.
        name: of the report, and of the folder of its pictures.
        contents: what it shows.
        results: all that is known.

    Returns:
        The report in Markdown, and the pictures.
    """
    found, folder = Findings(results, contents.methods), root / "figures" / name
    drawn = {path.stem: path for path in _draw(folder, contents, found)}
    path = root / f"{name}.md"
    text = "\n".join(_text(contents, found, results, drawn, root))
    with replacing(path) as temporary:
        temporary.write_text(text)
    page.write(path.with_suffix(".html"), contents.title, page.from_markdown(text))
    return [path, *drawn.values()]


def _draw(folder: Path, contents: Contents, found: Findings) -> list[Path]:
    shown = (*contents.methods, *RANDOM)
    drawn = [p for setup in contents.setups for p in pictures.worlds(folder, found, setup, shown)]
    for table in contents.tables:
        own = found.comparing(table.methods)
        if isinstance(table, Averages):
            drawn += pictures.averages(folder, own, table)
        else:
            drawn += pictures.actions(folder, own, table)
    drawn += pictures.pretraining(folder, found, "pretraining", contents.methods, contents.setups)
    if contents.tasks:
        drawn += pictures.tasks(folder, found)
    return drawn + pictures.order(folder, found) + pictures.drivers(folder, found)


def _text(
    contents: Contents,
    found: Findings,
    results: Sequence[Result],
    drawn: Mapping[str, Path],
    root: Path,
) -> Lines:
    def picture(stem: str, caption: str) -> Lines:
        path = drawn.get(stem)
        return [f"![{caption}]({path.relative_to(root)})", ""] if path else []

    averaged = [table for table in contents.tables if isinstance(table, Averages)]
    lines = [f"# {contents.title}", "", "## Verdict", ""]
    lines += verdict.verdict(averaged, found, results)
    for line in tables.diverged(found):
        lines += [line, ""]
    missing = []
    for table in contents.tables:
        if not any(found.evaluated_at(s, m) or found.has_diverged([s], m)
                   for group in table.setups for s in group for m in table.methods):  # fmt: skip
            missing.append(f"{table.title} ({table.source})")
            continue
        lines += [f"## {table.title} ({table.source})", ""]
        own = found.comparing(table.methods)
        if isinstance(table, Averages):
            lines += [*picture(table.name, table.title), *tables.averages(table, own)]
        else:
            lines += [*picture(table.name, table.title), *tables.actions(table, own)]
        lines += made_by(own, table.setups, table.methods)
    shown = (*contents.methods, *RANDOM)
    for setup in contents.setups:
        if not any(found.evaluated_at(setup, method) for method in contents.methods):
            missing.append(f"each world, pre-trained in {setup}")
            continue
        lines += [f"## Each world, pre-trained in {setup}", ""]
        lines += picture(f"worlds_{setup}", f"Each of the ten worlds, pre-trained in {setup}")
        for metric, what in ((INTERACTIONS, "Unique interactions"), (SUCCESS, "Success (%)")):
            lines += [f"{what}:", "", *tables.worlds(found, setup, metric, shown)]
        lines += made_by(found, ((setup,),), contents.methods)
    lines += ["## While pre-training (Figures 23, 25, 27 and 21)", ""]
    lines += picture("pretraining", "While pre-training")
    lines += tables.trends(found, contents.methods, contents.setups)
    if contents.tasks:
        lines += ["## Learning tasks (Figure 8)", "", *picture("tasks", "Learning tasks")]
        lines += tasks.table(found)
    lines += ["## What drives the order of methods", ""]
    for setup in found.setups():
        lines += picture(f"order_{setup}", f"C-BET beside Count, pre-trained in {setup}")
    lines += [*tables.order(found), *picture("drivers", "With more and more frames")]
    if found.setups():
        lines += ["Every evaluation:", "", *tables.drivers(found)]
    if missing:
        lines += ["## Not run", "", *(f"- {what}" for what in missing), ""]
    return [*lines, *_method(results)]


def _method(results: Iterable[Result]) -> Lines:
    """Return how the numbers were made."""
    asked = {row.metric: (row.method, row.value) for row in results if row.stage == STUDY}
    if not asked:
        return []
    return [
        "## How it was measured",
        "",
        "Actions are sampled; success ends the episode. The methods of a table are compared after "
        "equal frames: the most that all of them that were run have been evaluated after, in all "
        "setups that a mean is of. Where setups have none in common, each has its own, and the "
        "table has both ends; where methods have none, each has its latest, and a line below the "
        "table says so. *What drives the order of methods* has every evaluation.",
        "",
        "Intervals are of 95 % confidence: of a mean Student's t over the seeds, of an "
        "interquartile mean a bootstrap of the seeds in each world. Curves are means over a "
        "sliding window of 300 x 3,200 frames of 50 M, scaled to the budget. What the paper "
        "draws without printing its value is not printed here either. A diamond in a picture is "
        "a number that the paper prints.",
        "",
    ]
