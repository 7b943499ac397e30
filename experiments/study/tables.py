"""The tables of a study: our numbers, published ones, and differences."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from cbet_jax.analysis.aggregates import estimate, improvement, interquartile_mean
from cbet_jax.analysis.method_style import title
from envs.names import ACTIONS
from envs.names import TRANSFER as TEN_WORLDS
from experiments.evaluation.evaluation_table import ALL_WORLDS, span
from experiments.reports.comparison import ENTROPY, SHARES, Row
from experiments.study.contents import (
    INTERACTIONS,
    PERCENT,
    RANDOM,
    SUCCESS,
    THREE,
    PaperTable,
    printed_scale,
    published,
)
from experiments.study.findings import Findings
from experiments.study.plan import EVALUATION, PRETRAIN
from experiments.study.results import CURVES, FRAMES_TO_SOLVE, FRAMES_TO_SUCCEED, SOLVED, SUCCEEDS

DIGITS = 2
OTHER_FRAMES = "after other frames"
NOT_EACH = "not in each world"


class Table(NamedTuple):
    """A table of text."""

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]


class Cell(NamedTuple):
    """One number in a table of the paper: ours and the published one."""

    setups: tuple[str, ...]
    method: str
    metric: str
    ours: Row | None  # None: a run is missing
    frames: tuple[int, ...]  # pre-training frames in each setup
    published: str  # the printed number, or ''


def cells(table: PaperTable, found: Findings) -> list[Cell]:
    """Return the cells of a table of the paper, row by row."""
    known = published()
    metrics = (table.metric,) if table.metric else (*SHARES, ENTROPY)
    return [
        Cell(
            *(setups, method, metric, found.row(setups, method, metric, frames), frames),
            known.get((table.name, " ".join(setups), method, metric), ""),
        )
        for setups in table.setups
        for method in table.methods
        for frames in [found.compared_at(setups, method, table.methods)]
        for metric in metrics
    ]


def of_paper(table: PaperTable, found: Findings) -> Table:
    """Return a table of the paper: our numbers beside the published ones."""
    return averages(table, found) if table.metric else actions(table, found)


def averages(table: PaperTable, found: Findings) -> Table:
    """Return each method's mean, and its differences from the published and the first result."""
    scale, rows = printed_scale(table.metric), []
    for setups, group in groupby(cells(table, found), key=lambda cell: cell.setups):
        first: Cell | None = None
        for cell in group:
            ours, ended = cell.ours, found.ended_early(setups, cell.method)
            told = cell.method in RANDOM and setups != table.setups[0]
            if told or not (ours or cell.published or ended):
                continue
            where = _setups(setups), title(cell.method)
            if ours is None:
                missing = NOT_EACH if found.evaluated_at(setups, cell.method) else "not run"
                missing = "diverged" if ended else missing
                rows.append([*where, missing, cell.published, *[""] * 4])
                continue
            above = scale * ours.mean.value - float(cell.published or "nan")
            apart = ""
            if first and first.ours:
                equal = cell.method in RANDOM or cell.frames == first.frames
                apart = ours.difference_text(first.ours, DIGITS, scale) if equal else OTHER_FRAMES
            first = first or cell
            differences = f"{above:+.{DIGITS}f}" if cell.published else "", apart
            seeds, frames = str(len(ours.values)), span(cell.frames)
            rows.append([*where, _cell(ours), cell.published, *differences, seeds, frames])
    header = ("setup", "method", f"ours{_unit(table.metric)}", "published", "ours - published")
    return Table((*header, "ours - first result", "seeds", "frames"), rows)


def actions(table: PaperTable, found: Findings) -> Table:
    """Return the share of each action, as the paper's table does."""
    rows = []
    for (setups, method), group in groupby(cells(table, found), key=lambda cell: cell[:2]):
        of_method = list(group)
        where = _setups(setups), title(method)
        rows.append([*where, "ours", *(_cell(cell.ours) for cell in of_method)])
        rows.append([*where, "published", *(cell.published for cell in of_method)])
    header = ("setup", "method", "", *(f"{action} (%)" for action in ACTIONS), "entropy")
    return Table(header, rows)


def evaluations(found: Findings) -> Table:
    """Return all evaluations of each setup, and of the mean of the three if all were run."""
    groups = [(setup,) for setup in found.setups()]
    rows = []
    for setups in [THREE, *groups] if set(THREE) <= set(found.setups()) else groups:
        for method in found.methods(setups[0]):
            for frames in found.evaluated_at(setups, method):
                actors = found.actors(setups[0], method)
                at = (frames,) * len(setups)
                means = [found.row(setups, method, name, at) for name in (INTERACTIONS, SUCCESS)]
                numbers = f"{frames:,}", str(actors), f"{frames // actors:,}"
                shown = (_cell(row) if row else NOT_EACH for row in means)
                rows.append([_setups(setups), title(method), *numbers, *shown])
    header = ("setup", "method", "frames", "actors", "steps an actor", "interactions")
    return Table((*header, "success (%)"), rows)


def worlds(found: Findings, setup: str, metric: str) -> Table:
    """Return the result of each method's policy in each world, after equal frames."""
    rows, there = [], dict.fromkeys((*TEN_WORLDS, *found.names(EVALUATION, 3)))
    for method in (*found.methods(setup), *RANDOM):
        at = found.compared_at((setup,), method, found.main_methods(setup))
        cells = [found.row((setup,), method, metric, at, (world,)) for world in there]
        if any(cells):
            rows.append([title(method), span(at), *map(_cell, cells)])
    return Table((f"method{_unit(metric)}", "frames", *there), rows)


def pretraining(found: Findings) -> Table:
    """Return metrics of pre-training after a tenth, half and all of the frames."""
    rows = []
    for metric in CURVES:
        for setup in found.setups(PRETRAIN):
            for method in found.methods(setup, PRETRAIN):
                curve = found.curve((PRETRAIN, setup, method, ALL_WORLDS, metric))
                if curve is None:
                    continue
                end = curve.frames[-1]
                at = [int(np.abs(curve.frames - part * end).argmin()) for part in (0.1, 0.5, 1)]
                cells = [_significant(*(float(line[i]) for line in curve[1:])) for i in at]
                rows.append([metric.replace("_", " "), setup, title(method), f"{end:,}", *cells])
    return Table(("while pre-training", "setup", "method", "frames", "10 %", "50 %", "100 %"), rows)


def tasks(found: Findings) -> Table:
    """Return the results of learning each task, with pre-training and from nothing."""
    rows, goals = [], (FRAMES_TO_SOLVE, FRAMES_TO_SUCCEED)
    for task in found.tasks():
        ways = [(*way, task) for way in found.ways()]
        told = {goal for goal in goals if any(found.last((*way, goal)) for way in ways)}
        first: Row | None = None
        for stage, setup, method in found.ways():
            run = stage, setup, method, task
            curve = found.curve((*run, "extrinsic_return"))
            returns = found.last((*run, "extrinsic_return"))
            success = found.last((*run, "success"))
            if curve is None or returns is None:
                continue
            frames = [
                _each_seed(found.last((*run, goal)), returns) if goal in told else ""
                for goal in goals
            ]
            how = f"policy of {setup}" if setup else "nothing"
            apart = success.difference_text(first, DIGITS, 100) if success and first else ""
            first = first or success
            returned = _cell(returns), _cell(found.area((*run, "extrinsic_return")))
            ends = *returned, _cell(success), apart, *frames
            rows.append([task, how, title(method), f"{curve.frames[-1]:,}", *ends])
    header = ("task", "from", "method", "frames", "last return", "mean return", "last success (%)")
    names = f"{SOLVED} of the best return", f"{100 * SUCCEEDS:.0f} % success on solvable levels"
    each = (f"frames to {name}: each seed" for name in names)
    return Table((*header, "success - the first row's", *each), rows)


def aggregates(found: Findings) -> Table:
    """Return how all tasks together were learnt, in each way that was tried in all of them."""
    rows, first = [], None
    for way, scores in found.scores().items():
        first = first or scores
        better = "" if scores is first else estimate(improvement, scores, first).text(DIGITS)
        middle = estimate(interquartile_mean, scores).text(DIGITS)
        how = f"policy of {way[1]}" if way[1] else "nothing"
        rows.append([how, title(way[2]), sum(map(len, scores)), middle, better])
    header = "from", "method", "runs", "interquartile mean of the mean return / best return"
    return Table((*header, "probability to be ahead of the first row"), rows)


def diverged(found: Findings) -> list[str]:
    """Return a line for each run that diverged."""
    return [
        f"Diverged after {frames:,} frames, and is reported until there: "
        f"{' '.join(filter(None, (stage, setup, title(method))))} in {world}."
        for (stage, setup, method, world), frames in found.diverged.items()
    ]


def _cell(row: Row | None) -> str:
    return row.text(DIGITS, printed_scale(row.metric)) if row else "not run"


def _each_seed(reached: Row | None, ran: Row) -> str:
    """Return the frames after which each seed that ran reached a goal."""
    at = reached.values if reached else {}
    return ", ".join(f"{at[seed]:,.0f}" if seed in at else "never" for seed in sorted(ran.values))


def _significant(value: float, low: float, high: float) -> str:
    """Return a mean and its interval with three significant digits."""
    return f"{value:.3g}" + (f" [{low:.3g}, {high:.3g}]" if low < high else "")


def _unit(metric: str) -> str:
    return " (%)" if metric in PERCENT else ""


def _setups(setups: Sequence[str]) -> str:
    return setups[0] if len(setups) == 1 else f"mean of {len(setups)} setups"
