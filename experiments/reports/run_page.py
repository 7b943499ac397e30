"""The content of the page about one run, or about several side by side."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cbet_jax.analysis import method_style
from cbet_jax.analysis.intervals import Estimate
from cbet_jax.analysis.learning_curves import Curve
from cbet_jax.runs import metrics
from cbet_jax.runs.reading import read_table, reading
from cbet_jax.settings.as_json import flattened
from experiments.common.outputs import is_hidden
from experiments.common.presets import published
from experiments.evaluation.evaluation_table import span
from experiments.reports import page, runs
from experiments.reports.runs import Run

EVALUATIONS = "*evaluation*.csv"  # in gridworlds, and in rooms
FRAMES = "checkpoint_frames"
COUNTED = ("positions_of_all_episodes",)  # columns without an interval


def body(title: str, found: Sequence[Run], folder: Path) -> str:
    """Return the page's content.

    Args:
        title: the page's heading.
        found: the runs.
        folder: the page's folder.
    """
    until = runs.last_frames(found)
    lines, said = runs.compared(found, runs.ends(found, until), until)
    parts = [page.heading(title, 1), overview(found)]
    parts += [page.heading("Learning curves"), *curves(found), page.heading("At the end")]
    parts += [page.paragraph(" ".join(said))]
    header = ("metric", "world", "run", "mean over seeds", f"difference from {found[0].name}")
    shown = len(header) if len(found) > 1 else len(header) - 1
    parts += [page.table(header[:shown], [line[:shown] for line in lines])]
    for run in found:
        parts += [*evaluation(run), *film(run, folder)]
    parts += [page.heading("Settings that differ"), differing(found), page.heading("Ran on")]
    parts += [manifest(run) for run in found]
    return "\n".join(parts)


def overview(found: Sequence[Run]) -> str:
    """Return a table of facts, with a column for each run."""
    facts: dict[str, list[str]] = {}
    for run in found:
        saved = (session for session in reversed(run.sessions) if "frames" in session)
        last: dict[str, Any] = next(saved, {})
        speed = runs.speed_of(last)
        played = last.get("frames", run.directory.saved_frames())
        asked = run.settings.train.frames
        of_run = {
            "what": run.settings.stage,
            "method": method_style.title(run.settings.train.method),
            "worlds": ", ".join(run.settings.environments),
            "frames of each seed": f"{played:,}" if played >= asked else f"{played:,} of {asked:,}",
            "seeds": str(run.settings.seeds),
            "frames/s of all seeds": f"{speed:,.0f}" if speed else "",
        }
        for name, fact in of_run.items():
            facts.setdefault(name, []).append(fact)
    rows = [(name, *cells) for name, cells in facts.items()]
    return page.table(("", *(run.name for run in found)), rows)


def curves(found: Sequence[Run]) -> list[str]:
    """Return a chart for each main metric: a line for each run, or for each world of one run."""
    charts = []
    for name, lines in runs.curves(found).items():
        colors = method_style.colors(lines)
        shown = [_line(line, colors[line], curve) for line, curve in lines.items()]
        metric = metrics.of(name)
        charts.append(page.chart(metric.title, "frames of each seed", metric.unit, shown))
    note = page.paragraph("Means over seeds. Bands: lowest to highest seed.")
    return [note, '<div class="charts">', *charts, "</div>"]


def _line(name: str, color: str, curve: Curve) -> dict[str, Any]:
    keys = {"x": curve.frames, "y": curve.mean, "low": curve.low, "high": curve.high}
    numbers = {key: [float(f"{x:.5g}") for x in values] for key, values in keys.items()}
    return {"name": name, "color": color, **numbers}


def evaluation(run: Run) -> list[str]:
    """Return a run's newest evaluation, or nothing: a table for each measure, a row for each world.

    Raises:
        RunDirectoryError: the evaluation is damaged.
    """
    path, table = _newest_table(run)
    if not table:
        return []
    tables = []
    with reading(path):
        policy, seed, world, *columns = table[0]
        kind = world.replace("environment", "world")
        measured = [x for x in columns if f"{x}_low" in columns and all(row[x] for row in table)]
        last = {(row[policy], row[world]): row for row in table}  # of several seeds, the mean
        policies = {row[policy]: method_style.title(row[policy]) for row in table}
        places = sorted((row[world] for row in table), key=lambda name: name != "all")
        titles = {name: f"all {kind}s" if name == "all" else name for name in places}
        episodes = min(int(row["episodes"]) for row in table)
        frames = span([int(row[FRAMES]) for row in table if row[policy] == table[0][policy]])
        for name in (*measured, *(x for x in columns if x in COUNTED)):
            rows = ((titles[at], *(_cell(last[x, at], name) for x in policies)) for at in titles)
            tables.append(page.table((name.replace("_", " "), *policies.values()), rows))
    heading = page.heading(f"Evaluation of {run.name} after {frames} frames")
    seeds = ", means of its seeds" if any(row[seed] == "all" for row in table) else ""
    note = f"{episodes} episodes of each seed in each {kind}{seeds}, with 95 % intervals."
    return [heading, page.paragraph(note), *tables]


def _newest_table(run: Run) -> tuple[Path, list[dict[str, str]]]:
    """Return a run's newest evaluation and its rows, none if there is none."""
    for path in _newest_first(run.directory.root.glob(EVALUATIONS)):
        header, rows = read_table(path)
        if rows and FRAMES in header:  # others are the user's own
            return path, rows
    return run.directory.root, []


def _newest_first(paths: Iterable[Path]) -> list[Path]:
    shown = (path for path in paths if not is_hidden(path))
    return sorted(shown, key=lambda path: path.lstat().st_mtime, reverse=True)


def _cell(row: dict[str, str], name: str) -> str:
    if name in COUNTED:
        return row[name]
    return Estimate(*(float(row[name + end]) for end in ("", "_low", "_high"))).text(2)


def film(run: Run, folder: Path) -> list[str]:
    """Return a run's newest film, or nothing."""
    for newest in _newest_first(run.directory.root.glob("*.gif"))[:1]:
        root = newest.parent.resolve().relative_to(folder.resolve(), walk_up=True)
        shown = page.picture(str(root / newest.name), newest.stem)
        return [page.heading(f"{run.name} at play"), shown]
    return []


def differing(found: Sequence[Run]) -> str:
    """Return the settings in which runs differ, or in which one run differs from the paper."""
    names = [run.name for run in found]
    if len(found) > 1:
        values = runs.differing(found)
    else:
        values = runs.differing(found, published(found[0].settings))
        names.append("published")
    rows = [(name, *each) for name, each in values.items()]
    return page.table(("setting", *names), rows) if rows else page.paragraph("None.")


def manifest(run: Run) -> str:
    """Return the machine and packages of each start of a run."""
    parts = [page.table((run.name, ""), flattened(session).items()) for session in run.sessions]
    starts = len(run.sessions)
    return page.details(f"{run.name}: {starts} start{'s' * (starts != 1)}", "".join(parts))
