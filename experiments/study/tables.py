"""The report's tables as text: our numbers beside the published ones."""

from collections.abc import Sequence

from cbet_jax.analysis.intervals import Estimate
from cbet_jax.analysis.method_style import title
from envs.minigrid.generators.catalogue import TRANSFER as TEN_WORLDS
from envs.minigrid.rules import ACTIONS
from experiments.evaluation.evaluation_table import ALL_WORLDS
from experiments.study.contents import (
    PERCENT,
    RANDOM,
    Actions,
    Averages,
    Published,
    printed_scale,
    published,
)
from experiments.study.estimates import (
    ENTROPY,
    INTERACTIONS,
    SHARES,
    SUCCESS,
    Findings,
    Measured,
)
from experiments.study.order import cases
from experiments.study.plan import EVALUATION, PRETRAIN
from experiments.study.results import CURVES

NOT_RUN, ENDED_EARLY, NOT_PRINTED = "not run", "diverged", "not printed"

Lines = list[str]  # of Markdown
NOTHING = ["Not run.", ""]


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Lines:
    """Return a table in Markdown."""

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    return [line(header), line(["---"] * len(header)), *(line(row) for row in rows), ""]


def averages(table: Averages, found: Findings) -> Lines:
    """Return a table of our numbers, the published ones and the differences.

    A number that was neither run nor published has no row.
    """
    known, scale = published(), printed_scale(table.metric)
    rows: list[list[str]] = []
    for setups in table.setups:
        ran = any(found.evaluated_at(setup, m) for setup in setups for m in table.methods)
        for method in table.methods:
            measured = measure(found, setups, method, table.metric)
            theirs = known.get((table.name, " ".join(setups), method, table.metric))
            missing = _missing(found, setups, method)
            told = method in RANDOM and any(
                row[1] == title(method) for row in rows
            )  # once for all setups
            if theirs or (ran and measured and not told) or missing == ENDED_EARLY:
                cells = _compared(measured, theirs, scale, missing)
                rows.append([_title(setups), title(method), *cells])
    unit = " (%)" if table.metric in PERCENT else ""
    header = ["setup", "method", f"ours{unit}, mean", "95 % of it", "interquartile mean"]
    header.append("95 % of that")
    lines = markdown([*header, "published", "difference", "seeds", "frames"], rows)
    return lines + compared_after(found, table.setups, table.methods)


def compared_after(
    found: Findings, groups: Sequence[Sequence[str]], methods: Sequence[str]
) -> Lines:
    """Return a line that says after how many frames a table compares its methods.

    Args:
        found: the results.
        groups: of setups, each a part of the table.
        methods: of the table.
    """
    parts = []
    for setups in groups:
        ran = [m for m in methods if all(found.evaluated_at(setup, m) for setup in setups)]
        at = {method: _span(found.compared_at(setups, method)) for method in ran}
        if len(set(at.values())) == 1:
            parts.append(f"{_title(setups)} {at[ran[0]]}")
        elif at:
            each = ", ".join(f"{title(method)} {frames}" for method, frames in at.items())
            parts.append(f"{_title(setups)} **unequal** ({each})")
    return [f"Frames of pre-training: {'; '.join(parts)}.", ""] if parts else []


def _span(frames: Sequence[int]) -> str:
    """Return the frames in each setup: one number where they are equal."""
    low, high = min(frames), max(frames)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _missing(found: Findings, setups: Sequence[str], method: str) -> str:
    """Return why a number is not there."""
    return ENDED_EARLY if found.has_diverged(setups, method) else NOT_RUN


def _compared(
    measured: Measured | None, theirs: Published | None, scale: float, missing: str
) -> list[str]:
    text = theirs.text if theirs else NOT_PRINTED
    if measured is None:
        return [missing, "", "", "", text, "", "", ""]
    ours = scale * measured.mean.value
    return [
        f"{ours:.2f}",
        interval(measured.mean, measured.seeds, scale),
        f"{scale * measured.middle.value:.2f}",
        interval(measured.middle, measured.seeds, scale),
        text,
        f"{ours - theirs.value:+.2f}" if theirs else "",
        str(measured.seeds),
        _span(measured.frames),
    ]


def actions(table: Actions, found: Findings) -> Lines:
    """Return a table of the shares of all actions: ours, the published ones, the differences."""
    known, columns, rows = published(), (*SHARES, ENTROPY), []
    for setups in table.setups:
        for method in table.methods:
            where = [_title(setups), title(method)]
            ours = [measure(found, setups, method, metric) for metric in columns]
            theirs = [known[table.name, " ".join(setups), method, metric] for metric in columns]
            triples = list(zip(columns, ours, theirs, strict=True))
            missing = _missing(found, setups, method)
            cells = [_cell(measured, printed_scale(name), missing) for name, measured, _ in triples]
            rows.append([*where, "ours", *cells])
            rows.append([*where, "published", *(t.text for t in theirs)])
            rows.append([*where, "difference", *(_difference(*triple) for triple in triples)])
    header = ["setup", "method", "", *(f"{action} (%)" for action in ACTIONS), "entropy"]
    return markdown(header, rows) + compared_after(found, table.setups, table.methods)


def _difference(metric: str, ours: Measured | None, theirs: Published) -> str:
    return f"{printed_scale(metric) * ours.mean.value - theirs.value:+.2f}" if ours else ""


def diverged(found: Findings) -> Lines:
    """Return a line about each run that diverged."""
    return [
        f"Diverged after {frames:,} frames, and is reported until there: "
        f"{' '.join(filter(None, (stage, setup, title(method))))} in {world}."
        for (stage, setup, method, world), frames in found.diverged.items()
    ]


def worlds(found: Findings, setup: str, metric: str, methods: Sequence[str]) -> Lines:
    """Return a table of our numbers in each world; the paper draws such bars without numbers."""
    methods = [m for m in methods if m in RANDOM or found.evaluated_at(setup, m)]
    if set(methods) <= set(RANDOM):
        return NOTHING
    rows = [
        [
            world,
            *(
                _cell(measure(found, (setup,), m, metric, (world,)), printed_scale(metric))
                for m in methods
            ),
        ]
        for world in TEN_WORLDS
    ]
    return markdown(["world", *map(title, methods)], rows) + compared_after(
        found, ((setup,),), methods
    )


def trends(found: Findings, methods: Sequence[str], setups: Sequence[str]) -> Lines:
    """Return what was measured while pre-training: after a tenth, a half and all frames."""
    rows = []
    for metric in CURVES:
        for setup in setups:
            for method in methods:
                curve = found.curve((PRETRAIN, setup, method, ALL_WORLDS, metric))
                if curve is None:
                    continue
                end = curve.frames[-1]
                at = [abs(curve.frames - part * end).argmin() for part in (0.1, 0.5, 1)]
                cells = [Estimate(curve.mean[i], curve.low[i], curve.high[i]) for i in at]
                what = metric.replace("_", " "), setup, title(method), f"{end:,}"
                rows.append([*what, *map(_significant, cells)])
    header = ["while pre-training", "setup", "method", "frames", "10 %", "50 %", "100 %"]
    return markdown(header, rows) if rows else NOTHING


def order(found: Findings) -> Lines:
    """Return C-BET and Count beside each other in each case."""
    rows = []
    for case in cases(found):
        at = sorted({frames for frames in case.at(found) if frames})
        cells = [
            _cell(measured, printed_scale(metric))
            for metric in (INTERACTIONS, SUCCESS)
            for measured in case.measure(found, metric)
        ]
        rows.append([case.title, ", ".join(f"{frames:,}" for frames in at), *cells])
    header = ["setup", "frames", "interactions: C-BET", "Count", "success (%): C-BET", "Count"]
    return markdown(header, rows) if rows else NOTHING


def drivers(found: Findings) -> Lines:
    """Return all evaluations by setup, method, frames and steps of an actor."""
    rows = []
    for setup in found.setups():
        for method in found.names(EVALUATION, 2):
            for frames in found.evaluated_at(setup, method):
                actors = found.actors(setup, method)
                cells = [
                    _cell(
                        measure(found, (setup,), method, metric, frames=frames),
                        printed_scale(metric),
                    )
                    for metric in (INTERACTIONS, SUCCESS)
                ]
                each = f"{frames // actors:,}"
                rows.append([setup, title(method), f"{frames:,}", str(actors), each, *cells])
    header = ["setup", "method", "frames", "actors", "steps an actor", "interactions"]
    return markdown([*header, "success (%)"], rows) if rows else NOTHING


def measure(
    found: Findings,
    setups: Sequence[str],
    method: str,
    metric: str,
    worlds: Sequence[str] = TEN_WORLDS,
    frames: int | None = None,
) -> Measured | None:
    """Return a mean over setups and worlds; policies without training belong to no setup."""
    return found.measure(("",) if method in RANDOM else setups, method, metric, worlds, frames)


def interval(estimate: Estimate, seeds: int, scale: float = 1.0) -> str:
    """Return a confidence interval; one seed has none."""
    return f"[{scale * estimate.low:.2f}, {scale * estimate.high:.2f}]" if seeds > 1 else "one seed"


def _cell(measured: Measured | None, scale: float, missing: str = NOT_RUN) -> str:
    if measured is None:
        return missing
    value = f"{scale * measured.mean.value:.2f}"
    return (
        f"{value} {interval(measured.mean, measured.seeds, scale)}" if measured.seeds > 1 else value
    )


def _significant(estimate: Estimate) -> str:
    """Return a mean and its interval, of whatever size they are."""
    if estimate.low == estimate.high:
        return f"{estimate.value:.3g}"
    return f"{estimate.value:.3g} [{estimate.low:.3g}, {estimate.high:.3g}]"


def _title(setups: Sequence[str]) -> str:
    return setups[0] if len(setups) == 1 else f"mean of {len(setups)} setups"
