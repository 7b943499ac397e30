"""The report's pictures."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from cbet_jax.analysis import figures
from cbet_jax.analysis.figures import Panel
from cbet_jax.analysis.intervals import Estimate
from cbet_jax.analysis.learning_curves import Curve
from envs.minigrid.generators.catalogue import TRANSFER as TEN_WORLDS
from envs.minigrid.rules import ACTIONS
from experiments.evaluation.evaluation_table import ALL_WORLDS
from experiments.study.contents import (
    RANDOM,
    Actions,
    Averages,
    printed_scale,
    published,
)
from experiments.study.estimates import INTERACTIONS, SHARES, SUCCESS, Findings, Measured
from experiments.study.order import Case, cases
from experiments.study.plan import EVALUATION, PRETRAIN, TABULA_RASA, TRANSFER
from experiments.study.tables import measure

MILLION = 1_000_000
FEWEST_METHODS = 2  # of a picture: one method alone is compared with nothing
BAND = "band: 95 % confidence interval over seeds"
WHISKERS = "whiskers: 95 % confidence intervals over seeds"


def worlds(folder: Path, found: Findings, setup: str, methods: Sequence[str]) -> list[Path]:
    """Draw bars of interactions and success in each of the ten worlds, for one setup."""
    panels: dict[str, dict[str, list[Estimate]]] = {}
    for metric, label in ((INTERACTIONS, "interactions an episode"), (SUCCESS, "success rate")):
        for method in methods:
            cells = [measure(found, (setup,), method, metric, (world,)) for world in TEN_WORLDS]
            means = [cell.mean for cell in cells if cell]
            if len(means) == len(cells):
                panels.setdefault(label, {})[method] = means
    if not any(method not in RANDOM for shown in panels.values() for method in shown):
        return []
    frames = set().union(*(found.compared_at((setup,), method) for method in methods)) - {0}
    after = f" for {frames.pop():,} frames" if len(frames) == 1 else " for unequal frames"
    title = f"Pre-trained in {setup}{after}, not trained further ({WHISKERS})"
    path = folder / f"worlds_{setup}.png"
    return [figures.bars(path, title, panels, TEN_WORLDS)]


def averages(folder: Path, found: Findings, table: Averages) -> list[Path]:
    """Draw a table of averages as bars: a group for each setup that was run."""
    groups = {" + ".join(setups): setups for setups in table.setups}
    shown = {
        name: {m: measure(found, setups, m, table.metric) for m in table.methods}
        for name, setups in groups.items()
    }
    complete = {
        name: cells
        for name, cells in shown.items()
        if any(cells[method] for method in cells if method not in RANDOM)
    }
    ran = [m for m in table.methods if any(cells[m] for cells in complete.values())]
    if len([m for m in ran if m not in RANDOM]) < FEWEST_METHODS:
        return []
    bars = {m: [_mean(cells[m]) for cells in complete.values()] for m in ran}
    label = table.metric.replace("_", " ")
    theirs = {
        m: [_published(table.name, groups[name], m, table.metric) for name in complete]
        for m in ran
        if m not in RANDOM
    }
    path = folder / f"{table.name}.png"
    labels = [f"{name}\n{_after(found, groups[name], ran)}" for name in complete]
    title = f"{table.title} ({WHISKERS})"
    return [figures.bars(path, title, {label: bars}, labels, {label: theirs})]


def _published(table: str, setups: Sequence[str], method: str, metric: str) -> float:
    """Return the number that the paper prints, NaN where it prints none.

    Args:
        table: its name.
        setups: of pre-training.
        method: that was trained.
        metric: of the number.
    """
    number = published().get((table, " ".join(setups), method, metric))
    scale = printed_scale(metric)
    return number.value / scale if number else np.nan


def _after(found: Findings, setups: Sequence[str], methods: Sequence[str]) -> str:
    """Return after how many frames the methods of a group of bars are compared."""
    frames = {at for m in methods for at in found.compared_at(setups, m) if m not in RANDOM} - {0}
    if not frames:
        return ""
    low, high = (f"{end / MILLION:.3g}" for end in (min(frames), max(frames)))
    return f"{low} M" if low == high else f"{low} to {high} M"


def _mean(cell: Measured | None) -> Estimate:
    return cell.mean if cell else Estimate(np.nan, np.nan, np.nan)


def actions(folder: Path, found: Findings, table: Actions) -> list[Path]:
    """Draw how often each action was chosen, a panel for each setup."""
    panels: dict[str, dict[str, list[Estimate]]] = {}
    theirs: dict[str, dict[str, list[float]]] = {}
    for setups in table.setups:
        label = f"share of actions, {'+'.join(setups)}"
        for method in table.methods:
            cells = [measure(found, setups, method, share) for share in SHARES]
            means = [cell.mean for cell in cells if cell]
            if means:
                numbers = [_published(table.name, setups, method, share) for share in SHARES]
                panels.setdefault(label, {})[method] = means
                theirs.setdefault(label, {})[method] = numbers
    if not panels:
        return []
    title = f"{table.title} ({WHISKERS})"
    return [figures.bars(folder / f"{table.name}.png", title, panels, ACTIONS, theirs)]


def pretraining(
    folder: Path, found: Findings, name: str, methods: Sequence[str], setups: Sequence[str]
) -> list[Path]:
    """Draw interactions, return and intrinsic reward while pre-training, smoothed."""
    kinds = (
        ("interactions", "interactions an episode", False),
        ("extrinsic_return", "extrinsic return (not learnt from)", False),
        ("intrinsic_reward", "intrinsic reward a step", True),
    )
    panels = []
    for metric, label, logarithmic in kinds:
        for setup in setups:
            keys = {m: (PRETRAIN, setup, m, ALL_WORLDS, metric) for m in methods}
            lines = _curves(found, keys)
            if lines:
                panels.append(Panel(setup, "frames (millions)", label, lines, logarithmic))
    if not panels:
        return []
    columns = len({panel.title for panel in panels})
    path = folder / f"{name}.png"
    return [figures.lines(path, f"While pre-training ({BAND})", panels, columns)]


def tasks(folder: Path, found: Findings) -> list[Path]:
    """Draw how each task was learnt: a panel for each setup, what began from nothing beside it."""
    panels = []
    for task in found.tasks():
        metric = task, "extrinsic_return"
        plain = {
            f"{method}, tabula rasa": (TABULA_RASA, "", method, *metric)
            for method in found.names(TABULA_RASA, 2)
        }
        for setup in found.names(TRANSFER, 1) or [""]:
            biased = {
                f"{method}, transfer": (TRANSFER, setup, method, *metric)
                for method in found.names(TRANSFER, 2)
            }
            title = f"{task}, from {setup}" if setup else task
            lines = _curves(found, {**biased, **plain})
            if lines:
                panels.append(Panel(title, "frames (millions)", "extrinsic return", lines))
    if not panels:
        return []
    return [figures.lines(folder / "tasks.png", f"Learning tasks ({BAND})", panels)]


def order(folder: Path, found: Findings) -> list[Path]:
    """Draw C-BET and Count beside each other in each case that was run, setup by setup."""
    shown = cases(found)
    setups = dict.fromkeys(case.setup for case in shown)
    return [_order(folder, found, [c for c in shown if c.setup == setup]) for setup in setups]


def _order(folder: Path, found: Findings, shown: Sequence[Case]) -> Path:
    panels: dict[str, dict[str, list[Estimate]]] = {}
    for metric, label in ((INTERACTIONS, "interactions an episode"), (SUCCESS, "success rate")):
        pairs = [case.measure(found, metric) for case in shown]
        for name, cells in zip(("C-BET", "Count"), zip(*pairs, strict=True), strict=True):
            panels.setdefault(label, {})[name] = [_mean(cell) for cell in cells]
    names = [case.title.replace(", ", "\n") + f"\n{case.frames / MILLION:.2g} M" for case in shown]
    title = f"What drives the order: mean of ten worlds after so many frames\n({WHISKERS})"
    return figures.bars(folder / f"order_{shown[0].setup}.png", title, panels, names)


def drivers(folder: Path, found: Findings) -> list[Path]:
    """Draw evaluations against frames, and against steps an actor where runs differ in actors."""
    runs = [(s, m) for s in found.setups() if s for m in found.names(EVALUATION, 2)]
    evaluated = [run for run in runs if len(found.evaluated_at(*run)) > 1]
    measures = (False, True) if len({found.actors(*run) for run in evaluated}) > 1 else (False,)
    panels = []
    for metric, label in ((INTERACTIONS, "interactions an episode"), (SUCCESS, "success rate")):
        for per_actor in measures:
            lines = {
                f"{method}, {setup}": line
                for setup, method in evaluated
                if (line := _evaluations(found, setup, method, metric, per_actor))
            }
            horizontal = "steps an actor" if per_actor else "frames"
            panels.append(Panel("", f"{horizontal} (millions)", label, lines))
    if not any(panel.lines for panel in panels):
        return []
    title = f"With more and more frames: mean of ten worlds ({BAND})"
    return [figures.lines(folder / "drivers.png", title, panels, columns=2)]


def _evaluations(
    found: Findings, setup: str, method: str, metric: str, per_actor: bool
) -> Curve | None:
    """Return what a pre-trained policy reached after more and more frames."""
    scale = MILLION * (found.actors(setup, method) if per_actor else 1)
    points = [
        (at / scale, *cell.mean)
        for at in found.evaluated_at(setup, method)
        if (cell := measure(found, (setup,), method, metric, frames=at))
    ]
    return Curve(*np.array(points).T) if len(points) > 1 else None


def _curves(found: Findings, keys: Mapping[str, tuple[str, ...]]) -> dict[str, Curve]:
    curves = {name: found.curve(key) for name, key in keys.items()}
    return {n: c._replace(frames=c.frames / MILLION) for n, c in curves.items() if c}
