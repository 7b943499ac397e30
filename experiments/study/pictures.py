"""The pictures of a study."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from cbet_jax.analysis import figures
from cbet_jax.analysis.aggregates import bootstrap, profile
from cbet_jax.analysis.figures import Panel
from cbet_jax.analysis.intervals import Estimate
from cbet_jax.analysis.learning_curves import Curve
from envs.names import ACTIONS
from envs.names import TRANSFER as TEN_WORLDS
from experiments.evaluation.evaluation_table import ALL_WORLDS
from experiments.reports.comparison import ENTROPY, Row
from experiments.study import contents, tables
from experiments.study.findings import Findings, Key
from experiments.study.plan import PRETRAIN, TABULA_RASA, TRANSFER

MILLION = 1_000_000
MILLIONS = "frames (millions)"
BAND = "band: 95 % confidence interval over seeds"
WHISKERS = "whiskers: 95 % confidence intervals over seeds"
LABELS = {contents.INTERACTIONS: "interactions an episode", contents.SUCCESS: "success rate"}
CURVES = {  # metric of pre-training -> label, and whether its axis is logarithmic
    "interactions": ("interactions an episode", False),
    "extrinsic_return": ("extrinsic return (not learnt from)", False),
    "intrinsic_reward": ("intrinsic reward a step", True),
}
Pictures = list[Path]  # empty if there is nothing to draw


def of_paper(folder: Path, found: Findings, table: contents.PaperTable) -> Pictures:
    """Draw a table of the paper as bars: groups are setups, or actions with a panel per setup."""
    cells = [cell for cell in tables.cells(table, found) if cell.metric != ENTROPY]
    ran = {cell.setups for cell in cells if cell.ours and cell.method not in contents.RANDOM}
    bars: dict[str, dict[str, list[Estimate]]] = {}
    theirs: dict[str, dict[str, list[float]]] = {}
    groups: dict[str, None] = {}
    for cell in cells:
        if cell.setups not in ran:
            continue
        setups, number = " + ".join(cell.setups), float(cell.published or "nan")
        label = LABELS.get(cell.metric) or f"share of actions, {setups}"
        bars.setdefault(label, {}).setdefault(cell.method, []).append(_estimate(cell.ours))
        theirs.setdefault(label, {}).setdefault(cell.method, []).append(
            number / contents.printed_scale(cell.metric)
        )
        groups[f"{setups}\n{_after(found, cell.setups, table.methods)}"] = None
    bars = {
        label: {m: x for m, x in each.items() if not np.isnan([bar.value for bar in x]).all()}
        for label, each in bars.items()
    }
    if len({method for shown in bars.values() for method in shown} - {*contents.RANDOM}) < 2:
        return []  # a single method has no other to be compared with
    path, title = folder / f"{table.name}.png", f"{table.title} ({WHISKERS})"
    return [figures.draw_bars(path, title, bars, list(groups) if table.metric else ACTIONS, theirs)]


def worlds(folder: Path, found: Findings, setup: str) -> Pictures:
    """Draw the results of one setup's policies in each of the ten worlds."""
    methods = found.main_methods(setup)
    panels: dict[str, dict[str, list[Estimate]]] = {}
    for metric, label in LABELS.items():
        for method in (*methods, *contents.RANDOM):
            at = found.compared_at((setup,), method, methods)
            rows = [found.row((setup,), method, metric, at, (world,)) for world in TEN_WORLDS]
            if all(rows):
                panels.setdefault(label, {})[method] = [_estimate(row) for row in rows]
    if not panels:
        return []
    after = _after(found, (setup,), methods)
    title = f"Pre-trained in {setup} for {after} frames, not trained further ({WHISKERS})"
    return [figures.draw_bars(folder / f"worlds_{setup}.png", title, panels, TEN_WORLDS)]


def frames(folder: Path, found: Findings) -> Pictures:
    """Draw results over the frames of pre-training, with a column per setup."""
    panels = []
    for metric, label in LABELS.items():
        for setup in found.setups():
            lines = {}
            for method in found.methods(setup):
                at = found.evaluated_at((setup,), method)
                rows = [found.row((setup,), method, metric, (x,)) for x in at]
                if len(at) > 1 and all(rows):
                    means = [_estimate(row) for row in rows]
                    lines[method] = Curve(np.array(at) / MILLION, *np.array(means).T)
            if lines:
                panels.append(Panel(setup, MILLIONS, label, lines))
    title = f"With more and more frames: mean of ten worlds ({BAND})"
    return _lines(folder / "frames.png", title, panels)


def pretraining(folder: Path, found: Findings) -> Pictures:
    """Draw smoothed interactions, return and intrinsic reward of pre-training."""
    panels = []
    ran = found.setups(PRETRAIN)
    for metric, (label, logarithmic) in CURVES.items():
        for setup in [setup for setup in ran if setup in contents.THREE] or ran:
            methods = found.main_methods(setup, PRETRAIN)
            keys = {m: (PRETRAIN, setup, m, ALL_WORLDS, metric) for m in methods}
            if lines := _curves(found, keys):
                panels.append(Panel(setup, MILLIONS, label, lines, logarithmic))
    return _lines(folder / "pretraining.png", f"While pre-training ({BAND})", panels)


def tasks(folder: Path, found: Findings) -> Pictures:
    """Draw the learning of each task, with each setup's policies and from nothing."""
    panels = []
    for task in found.tasks():
        for setup in found.names(TRANSFER, 1) or [""]:
            keys = {
                f"{method}, {how}": (stage, of, method, task, "extrinsic_return")
                for stage, of, how in (
                    (TRANSFER, setup, "transfer"),
                    (TABULA_RASA, "", "tabula rasa"),
                )
                for method in found.methods(of, stage)
            }
            if lines := _curves(found, keys):
                title = f"{task}, from {setup}" if setup else task
                flat_from = {name: found.flat_from(key) / MILLION for name, key in keys.items()}
                panels.append(
                    Panel(title, MILLIONS, "extrinsic return", lines, flat_from=flat_from)
                )
    return _lines(folder / "tasks.png", f"Learning tasks ({BAND})", panels, columns=2)


def profiles(folder: Path, found: Findings) -> Pictures:
    """Draw the share of runs above each score, all tasks together."""
    tasks, thresholds = found.tasks(), np.linspace(0, 1, 41)
    lines = {}
    for way, scores in found.scores().items():
        how = f"transfer from {way[1]}" if way[1] else "tabula rasa"
        shares = bootstrap(partial(profile, thresholds=thresholds), scores)
        lines[f"{way[2]}, {how}"] = Curve(thresholds, *shares)
    if len(lines) < 2:
        return []
    panel = Panel(f"{len(tasks)} tasks", "mean return / best return", "share of runs above", lines)
    title = "Performance profiles (band: 95 % of a stratified bootstrap)"
    return _lines(folder / "profiles.png", title, [panel])


def _lines(path: Path, title: str, panels: Sequence[Panel], columns: int = 0) -> Pictures:
    """Draw panels, if any; by default with one column per title, at most three."""
    columns = columns or min(len({panel.title for panel in panels}), 3)
    return [figures.draw_lines(path, title, panels, columns)] if panels else []


def _curves(found: Findings, keys: Mapping[str, Key]) -> dict[str, Curve]:
    curves = {name: found.curve(key) for name, key in keys.items()}
    return {n: c._replace(frames=c.frames / MILLION) for n, c in curves.items() if c}


def _after(found: Findings, setups: Sequence[str], methods: Sequence[str]) -> str:
    """Return the range of frames at which methods are compared, as text."""
    ran = [m for m in methods if m not in contents.RANDOM and found.evaluated_at(setups, m)]
    at = {frames for method in ran for frames in found.compared_at(setups, method, methods)}
    if not at:
        return ""
    low, high = (f"{end / MILLION:.3g}" for end in (min(at), max(at)))
    return f"{low} M" if low == high else f"{low} to {high} M"


def _estimate(row: Row | None) -> Estimate:
    return row.mean if row else Estimate(np.nan, np.nan, np.nan)
