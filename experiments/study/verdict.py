"""What a study found, in five lines and one table: the beginning of its report."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from cbet_jax.analysis.method_style import title
from experiments.study.contents import (
    PERCENT,
    RANDOM,
    THREE,
    Averages,
    Published,
    printed_scale,
    published,
)
from experiments.study.estimates import Findings, Measured
from experiments.study.plan import EVALUATION
from experiments.study.results import SOLVED, STUDY, Result
from experiments.study.tables import Lines, interval, markdown, measure
from experiments.study.tasks import task_runs

PUBLISHED_SEEDS = 7
MAIN_TABLES = 2  # that the verdict is about


class Compared(NamedTuple):
    """One table's methods in the group of setups where most of them were run."""

    table: Averages
    setups: tuple[str, ...]
    ours: dict[str, Measured]  # method -> mean
    theirs: dict[str, Published]  # of the same setups, or of all three
    same_setups: bool  # whether these are published for the same setups


def verdict(tables: Sequence[Averages], found: Findings, results: Sequence[Result]) -> Lines:
    """Return five lines and a table.

    Args:
        tables: of the report; the verdict is about the first two.
        found: the results, sorted.
        results: all of them.
    """
    compared = [_compared(table, found) for table in tables[:MAIN_TABLES]]
    lines = [f"- {_ran(results)}"]
    lines += [f"- {_order(each)}" for each in compared]
    lines += [f"- {tables[0].title}: one table only."] * (MAIN_TABLES - len(compared))
    lines += [f"- {_published(tables, found)}", f"- {_tasks(found)}", ""]
    return lines + _table(compared)


def _compared(table: Averages, found: Findings) -> Compared:
    own, known = found.comparing(table.methods), published()
    methods = [method for method in table.methods if method not in RANDOM]

    def ours(setups: Sequence[str]) -> dict[str, Measured]:
        cells = {m: measure(own, setups, m, table.metric) for m in table.methods}
        return {method: cell for method, cell in cells.items() if cell}

    setups = max(table.setups, key=lambda each: len(set(ours(each)) & set(methods)))
    exact = {m: known.get((table.name, " ".join(setups), m, table.metric)) for m in table.methods}
    three = {m: known.get((table.name, " ".join(THREE), m, table.metric)) for m in table.methods}
    theirs = exact if any(exact.values()) else three
    there = {method: number for method, number in theirs.items() if number}
    return Compared(table, setups, ours(setups), there, theirs is exact)


def _ran(results: Sequence[Result]) -> str:
    asked = {row.metric: (row.method, row.value) for row in results if row.stage == STUDY}
    if not asked:
        return "Nothing was run."
    trained = [row for row in results if row.stage == EVALUATION and row.actors]
    worlds = len({row.environment for row in results if row.stage == EVALUATION})
    frames = max((row.frames for row in trained), default=0)
    seeds: dict[tuple[str, str], set[int]] = {}
    for row in trained:
        seeds.setdefault((row.setup, row.method), set()).add(row.seed)
    numbers = sorted({len(each) for each in seeds.values()} or {int(asked["seeds"][1])})
    several = " to ".join(str(number) for number in dict.fromkeys((numbers[0], numbers[-1])))
    return (
        f"Ours: preset `{asked['budget'][0]}`, up to {frames:,} frames, "
        f"{'one seed' if numbers == [1] else f'{several} seeds'} a method, "
        f"{asked['episodes'][1]:,.0f} episodes in each of {worlds} worlds. The paper: 50,000,000 "
        f"frames, {PUBLISHED_SEEDS} seeds, ten worlds."
    )


def _order(compared: Compared) -> str:
    """Return how our methods are ordered, and whether the paper orders them so."""
    table, ours = compared.table, compared.ours
    scale = printed_scale(table.metric)
    methods = [method for method in ours if method not in RANDOM]
    if not methods:
        return f"{table.title}: not run."
    ranked = sorted(methods, key=lambda method: -ours[method].mean.value)
    shown = ", ".join(f"{title(m)} {scale * ours[m].mean.value:.1f}" for m in ranked)
    unit = " (%)" if table.metric in PERCENT else ""
    frames = sorted({at for method in methods for at in ours[method].frames})
    after = " to ".join(f"{at:,}" for at in dict.fromkeys((frames[0], frames[-1])))
    where = f"{' + '.join(compared.setups)} after {after} frames"
    said = f"{table.title}{unit}, {where}: {shown}."
    return " ".join([said, *_agreement(compared, methods)])


def _agreement(compared: Compared, methods: Sequence[str]) -> list[str]:
    """Return the sentence that compares our order with the paper's, if it has one."""
    ours, theirs = compared.ours, compared.theirs
    pairs = list(combinations([method for method in methods if method in theirs], 2))
    if not pairs:
        return []
    if any(ours[method].seeds < 2 for pair in pairs for method in pair):
        return ["One seed tells no methods apart."]
    same, other = 0, []
    for pair in pairs:
        high, low = sorted(pair, key=lambda method: -theirs[method].value)
        if ours[high].mean.low > ours[low].mean.high:
            same += 1
        elif ours[low].mean.low > ours[high].mean.high:
            other.append(f"{title(low)} above {title(high)}")
    against = f"{len(other)} against it ({', '.join(other)})" if other else "none against it"
    open_ = len(pairs) - same - len(other)
    return [
        f"Of {len(pairs)} pairs {same} are in the paper's order, {against}, {open_} not told apart."
    ]


def _published(tables: Sequence[Averages], found: Findings) -> str:
    """Return how many published numbers our intervals hold."""
    known, inside, measured = published(), 0, 0
    for table in tables:
        own, scale = found.comparing(table.methods), printed_scale(table.metric)
        for setups in table.setups:
            for method in table.methods:
                number = known.get((table.name, " ".join(setups), method, table.metric))
                ours = measure(own, setups, method, table.metric) if number else None
                if number and ours and ours.seeds > 1:
                    measured += 1
                    inside += ours.mean.low <= number.value / scale <= ours.mean.high
    if not measured:
        return "No published mean was measured with several seeds in the same setups."
    return f"Of {measured} published means that were measured, our 95 % intervals hold {inside}."


def _tasks(found: Findings) -> str:
    learnt: dict[str, list[bool]] = {}
    for run in task_runs(found):
        most = 2 * len(run.solved) >= len(run.returns)
        learnt.setdefault(f"{run.method}, {run.how}", []).append(most)
    ended = f" {len(found.diverged)} runs diverged." if found.diverged else ""
    if not learnt:
        return f"No task was learnt.{ended}"
    counts = "; ".join(f"{how}: {sum(most)} of {len(most)}" for how, most in learnt.items())
    return f"Tasks with a return of {SOLVED} in half of the seeds or more: {counts}.{ended}"


def _table(compared: Sequence[Compared]) -> Lines:
    """Return a table of methods by our means and the published ones."""
    methods = dict.fromkeys(m for each in compared for m in each.table.methods if m in each.ours)
    if not methods:
        return []
    header = ["method"]
    for each in compared:
        unit = " (%)" if each.table.metric in PERCENT else ""
        where = "" if each.same_setups else ", mean of three setups"
        header += [f"{each.table.title}{unit}, {' + '.join(each.setups)}", f"published{where}"]
    rows = []
    for method in methods:
        row = [title(method)]
        for each in compared:
            scale = printed_scale(each.table.metric)
            ours, theirs = each.ours.get(method), each.theirs.get(method)
            value = f"{scale * ours.mean.value:.1f} " if ours else ""
            row.append(value + interval(ours.mean, ours.seeds, scale) if ours else "not run")
            row.append(theirs.text if theirs else "")
        rows.append(row)
    return markdown(header, rows)
