"""Write a page about runs, in one file: `python -m experiments.report RUN [RUN ...]`.

It has the learning curves (their values are said under the pointer), the newest evaluation with
its intervals, the newest film, the settings in which the runs differ, their speed, and what they
ran on.
"""

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import tyro

from cbet_jax.analysis import figures, method_style
from cbet_jax.analysis.figures import ALL_WORLDS, Lines
from cbet_jax.analysis.learning_curves import Curve, table_from_first_round
from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.runs import metrics, metrics_table
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError, holds_no
from cbet_jax.settings_json import flattened, to_json
from experiments.common import cli
from experiments.common.outputs import RUNS, distinct_names, is_hidden, new_page
from experiments.common.presets import HABITAT_PRESETS, PRESETS
from experiments.common.screen import Screen
from experiments.reports import page

MODULE = "experiments.report"
TOGETHER = "all"  # in place of a seed or a world, in the table of an evaluation


@dataclass(frozen=True)
class ReportOptions:
    """Write one page about one run, or about several beside each other."""

    directories: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN ...")]
    out: Path | None = None  # the page, a new .html (default: in the run, or for several in runs/)


EvaluationTable = tuple[tuple[str, ...], Sequence[Sequence[str]]]  # its header, its rows


class EvaluationKind(NamedTuple):
    """The files that hold one kind of evaluation."""

    pattern: str  # of their names
    columns: tuple[str, ...]  # that are shown


EPISODES = EvaluationKind(
    "evaluation*.csv",
    (
        *("method", "seed", "environment", "episodes", "checkpoint_frames"),
        *("success_rate", "success_rate_low", "success_rate_high"),
        *("unique_interactions", "unique_interactions_low", "unique_interactions_high"),
    ),
)
WALKS = EvaluationKind(
    "habitat-evaluation*.csv",
    (
        *("policy", "seed", "scene", "episodes", "checkpoint_frames"),
        *("positions", "positions_low", "positions_high", "positions_of_all_episodes"),
    ),
)


#: column of an evaluation -> title, digits
MEASURED = {"unique_interactions": ("unique interactions", 1), "success_rate": ("success rate", 2)}
IN_THEIR_PLACE = {"extrinsic_return": ("return", 2)}  # where one of those is not measured


class ReportedRun(NamedTuple):
    """A run, as it is on the disk."""

    name: str
    directory: RunDirectory
    settings: RunSettings
    panels: dict[str, Lines]  # metric -> world -> seed -> column
    sessions: list[dict[str, Any]]  # of its manifest


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page that the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors():
        options: ReportOptions = cli.parse(ReportOptions, arguments, MODULE)
        names = distinct_names(options.directories)
        runs = [read(*each) for each in zip(options.directories, names, strict=True)]
        if not runs:
            raise SettingsError("give one or more runs: RUN ...")
        folder = runs[0].directory.root if len(runs) == 1 else RUNS
        path = new_page(options.out, folder / "report.html")
        title = f"Report: {', '.join(run.name for run in runs)}"
        content = body(title, runs, path.parent)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            page.write(path, title, content)
        except OSError as error:
            raise RunDirectoryError(f"cannot write {path}: {error.strerror}") from None
    console.print(f"saved: {path}", soft_wrap=True, highlight=False)


def read(path: Path, name: str) -> ReportedRun:
    """Read a run's settings, metrics and pictures.

    Raises:
        RunDirectoryError: there is none, or it cannot be read.
    """
    directory = RunDirectory(path)
    settings = directory.settings()
    if not directory.metrics.is_file():
        raise holds_no("metrics yet", directory.metrics)
    try:
        table = table_from_first_round(
            metrics_table.read_verified(directory), settings.train.worlds
        )
        panels = figures.panels(table)
        manifest = directory.manifest
        sessions = json.loads(manifest.read_text())["sessions"] if manifest.is_file() else []
    except (ValueError, KeyError, TypeError) as error:
        raise RunDirectoryError(f"{path} cannot be read: {error}") from None
    return ReportedRun(name, directory, settings, panels, sessions)


def body(title: str, runs: Sequence[ReportedRun], folder: Path) -> str:
    """Return the page's content.

    Args:
        title: its heading.
        runs: that it is about.
        folder: that the page is in.
    """
    parts = [page.heading(title, 1), overview(runs)]
    parts += [page.heading("Learning curves"), *curves(runs)]
    for run in runs:
        parts += [*evaluation(run), *film(run, folder)]
    parts += [page.heading("Settings that differ"), differing(runs), page.heading("Ran on")]
    parts += [manifest(run) for run in runs]
    return "\n".join(parts)


def overview(runs: Sequence[ReportedRun]) -> str:
    """Return a table with a column for each run."""
    facts: dict[str, list[str]] = {}
    for run in runs:
        saved = (session for session in reversed(run.sessions) if "frames" in session)
        last: dict[str, Any] = next(saved, {})
        speed = last.get("frames_per_second")
        played, asked = last.get("frames", run.directory.saved_frames()), run.settings.train.frames
        of_run = {
            "what": run.settings.stage,
            "method": method_style.title(run.settings.train.method),
            "worlds": ", ".join(run.settings.environments),
            "frames of each seed": f"{played:,}" if played >= asked else f"{played:,} of {asked:,}",
            "seeds": str(run.settings.seeds),
            "frames/s of all seeds": f"{speed:,}" if speed else "",
        }
        for name, fact in of_run.items():
            facts.setdefault(name, []).append(fact)
    rows = [(name, *cells) for name, cells in facts.items()]
    return page.table(("", *(run.name for run in runs)), rows)


def curves(runs: Sequence[ReportedRun]) -> list[str]:
    """Return a chart for each main metric, with a line for each world of one run, or each run."""
    charts = []
    for name in metrics.MAIN:
        lines: dict[str, Curve] = {}
        for run in runs:
            of_worlds = run.panels.get(name, {})
            for world in of_worlds if len(runs) == 1 else of_worlds.keys() & {ALL_WORLDS}:
                lines[world if len(runs) == 1 else run.name] = figures.of_line(of_worlds, world)
        if not lines:
            continue
        colors = dict(zip(lines, figures.COLORS * len(lines), strict=False))
        shown = [_line(line, colors[line], curve) for line, curve in lines.items()]
        metric = metrics.of(name)
        charts.append(page.chart(metric.title, "frames of each seed", metric.unit, shown))
    seeds = "; ".join(
        f"{run.name}: " + ("one seed" if run.settings.seeds == 1 else f"{run.settings.seeds} seeds")
        for run in runs
    )
    note = page.paragraph(f"Means over seeds ({seeds}). Bands: lowest to highest seed.")
    return [note, '<div class="charts">', *charts, "</div>"]


def _line(name: str, color: str, curve: Curve) -> dict[str, Any]:
    def numbers(values: Any) -> list[float]:
        return [float(f"{value:.5g}") for value in values]

    return {
        "name": name,
        "color": color,
        "x": numbers(curve.frames),
        "y": numbers(curve.mean),
        "low": numbers(curve.low),
        "high": numbers(curve.high),
    }


def evaluation(run: ReportedRun) -> list[str]:
    """Return the newest evaluation of a run, with 95 % intervals; nothing where there is none.

    Raises:
        RunDirectoryError: it is damaged.
    """
    in_rooms = run.settings.habitat is not None
    found = newest_table(run, WALKS if in_rooms else EPISODES)
    if not found:
        return []
    try:
        header, rows = _walks(found) if in_rooms else _episodes(found)
        frames = int(found[0]["checkpoint_frames"])
    except (ValueError, TypeError, KeyError) as error:
        raise RunDirectoryError(f"an evaluation of {run.name} cannot be read: {error}") from None
    title = f"Evaluation of {run.name} after {frames:,} frames"
    return [page.heading(title), page.table(header, rows)]


def newest_table(run: ReportedRun, kind: EvaluationKind) -> list[dict[str, str]]:
    """Return the rows of a run's newest evaluation; none where there is none."""
    files = run.directory.root.glob(kind.pattern)
    for path in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True):
        with open(path, newline="", errors="replace") as file:
            rows = list(csv.DictReader(file))
        if rows and rows[0].keys() >= {*kind.columns}:  # others are somebody's own
            return rows
    return []


def _episodes(table: Sequence[Mapping[str, str]]) -> EvaluationTable:
    """Return the header and the rows of an evaluation in gridworlds."""
    chosen = {(row["environment"], row["method"]): row for row in table}
    shown = {name: of for name, of in MEASURED.items() if all(row[name] for row in table)}
    if shown != MEASURED:  # an environment of another library
        shown |= IN_THEIR_PLACE
    rows = [
        (
            "all worlds" if world == TOGETHER else world,
            method_style.title(method),
            _which_seed(row),
            *(_interval(row, name, digits) for name, (_, digits) in shown.items()),
            row["episodes"],
        )
        for (world, method), row in chosen.items()
    ]
    titles = (title for title, _ in shown.values())
    return ("world", "policy", "", *titles, "episodes"), rows


def _walks(table: Sequence[Mapping[str, str]]) -> EvaluationTable:
    """Return the header and the rows of an evaluation in rooms."""
    rows = [
        (
            "all scenes" if row["scene"] == TOGETHER else row["scene"],
            method_style.title(row["policy"]),
            _which_seed(row),
            _interval(row, "positions", 1),
            row["positions_of_all_episodes"],
            row["episodes"],
        )
        for row in table
    ]
    header = ("scene", "policy", "", "positions an episode", "positions in all", "episodes")
    return header, rows


def _which_seed(row: Mapping[str, str]) -> str:
    return "mean of seeds" if row["seed"] == TOGETHER else f"seed {row['seed']}"


def _interval(row: Mapping[str, str], name: str, digits: int) -> str:
    value, low, high = (f"{float(row[name + end]):.{digits}f}" for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]"


def film(run: ReportedRun, folder: Path) -> list[str]:
    """Return the newest film of a run; nothing where there is none."""
    films = (path for path in run.directory.root.glob("*.gif") if not is_hidden(path))
    newest = max(films, key=lambda path: path.stat().st_mtime, default=None)
    if newest is None:
        return []
    path = newest.resolve().relative_to(folder.resolve(), walk_up=True)
    return [page.heading(f"{run.name} at play"), page.picture(str(path), newest.stem)]


def differing(runs: Sequence[ReportedRun]) -> str:
    """Return the settings in which runs differ: from each other, or one from the paper's."""
    titles, settings = [run.name for run in runs], [run.settings for run in runs]
    if len(runs) == 1:
        presets = HABITAT_PRESETS if runs[0].settings.habitat else PRESETS
        titles.append("published")
        settings.append(presets["paper"])
    values = [flattened(to_json(each)) for each in settings]
    names = dict.fromkeys(name for each in values for name in each)
    rows = [(name, *(str(each.get(name, "")) for each in values)) for name in names]
    rows = [row for row in rows if len(set(row[1:])) > 1]
    if not rows:
        return page.paragraph("None.")
    return page.table(("setting", *titles), rows)


def manifest(run: ReportedRun) -> str:
    """Return what a run ran on, each time it was started."""
    parts = []
    for session in run.sessions:
        flat = flattened(session)
        parts.append(page.table((run.name, ""), flat.items()))
    starts = len(run.sessions)
    return page.details(f"{run.name}: {starts} start{'s' * (starts != 1)}", "".join(parts))


if __name__ == "__main__":
    main()
