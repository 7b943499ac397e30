"""The report of a study: Markdown and pictures, from nothing but the table of results."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from cbet_jax.runs.atomic_write import replacing
from experiments.study import pictures, tables
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
    """Write the report, and draw its pictures again.

    Args:
        root: the study's directory.
        name: of the report, and of the folder of its pictures.
        contents: what it shows.
        results: all that is known.

    Returns:
        The report and the pictures.
    """
    found, folder = Findings(results, contents.methods), root / "figures" / name
    drawn = _draw(folder, contents, found)
    path = root / f"{name}.md"
    with replacing(path) as temporary:
        temporary.write_text("\n".join(_text(contents, found, results, drawn, root)))
    return [path, *drawn]


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
    results: Iterable[Result],
    drawn: Sequence[Path],
    root: Path,
) -> Lines:
    lines = [f"# {contents.title}", "", *_preface(results)]
    for line in tables.diverged(found):
        lines += [line, ""]
    for table in contents.tables:
        lines += [f"## {table.title} ({table.source})", ""]
        own = found.comparing(table.methods)
        if isinstance(table, Averages):
            lines += tables.averages(table, own)
        else:
            lines += tables.actions(table, own)
    shown = (*contents.methods, *RANDOM)
    for setup in contents.setups:
        for metric, what in ((INTERACTIONS, "unique interactions"), (SUCCESS, "success (%)")):
            lines += [f"## {what.capitalize()} in each world, pre-trained in {setup}", ""]
            lines += tables.worlds(found, setup, metric, shown)
    lines += ["## While pre-training (Figures 23, 25, 27 and 21)", ""]
    lines += tables.trends(found, contents.methods, contents.setups)
    if contents.tasks:
        lines += ["## Learning tasks (Figure 8)", "", *tables.tasks(found)]
    lines += ["## What drives the order of methods", ""]
    lines += tables.order(found)
    if found.setups():
        lines += ["Every evaluation:", "", *tables.drivers(found)]
    pictured = [f"![{path.stem}]({path.relative_to(root)})" for path in drawn]
    return [*lines, "## Pictures", "", *pictured, ""]


def _preface(results: Iterable[Result]) -> Lines:
    asked = {row.metric: (row.method, row.value) for row in results if row.stage == STUDY}
    if not asked:
        return []
    preset = asked["budget"][0]
    budget, seeds, episodes = (f"{asked[n][1]:,.0f}" for n in ("budget", "seeds", "episodes"))
    return [
        f"Ours: preset `{preset}`, {budget} frames of pre-training for each of {seeds} seeds; "
        f"published: 50,000,000 frames, seven seeds. Policies play {episodes} episodes in each of "
        "ten worlds, actions sampled; success ends the episode. The methods of a table are "
        "compared after equal frames: the most that all of them that were run have been evaluated "
        "after, in all setups that a mean is of. Where setups have none in common, each has its "
        "own, and the table has both ends; where methods have none, each has its latest, and a "
        "line below the table says so. *What drives the order of methods* has every evaluation.",
        "",
        "Intervals are of 95 % confidence: of a mean Student's t over the seeds, of an "
        "interquartile mean a bootstrap of the seeds in each world. Curves are means over a "
        "sliding window of 300 x 3,200 frames of 50 M, scaled to the budget. What the paper "
        "draws without printing its value is not printed here either.",
        "",
    ]
