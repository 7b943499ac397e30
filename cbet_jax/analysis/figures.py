"""Pictures of runs: learning curves of metrics, other curves, and grouped bars."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cbet_jax.analysis import method_style
from cbet_jax.analysis.intervals import Estimate
from cbet_jax.analysis.learning_curves import (
    Curve,
    over_seeds,
    over_seeds_and_worlds,
    table_from_first_round,
)
from cbet_jax.runs import metrics, metrics_table
from cbet_jax.runs.atomic_write import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALL_WORLDS = "all worlds"
SPARSE_POINTS = 20  # a curve with fewer points shows each of them
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # of worlds
DASHES = ("-", "--", ":", "-.")
NARROWEST_INCHES, WIDEST_INCHES = 7.0, 10.0  # of a picture, which is read at a page's width
CROWDED_GROUPS = 5  # with more groups their names are slanted
LABEL_CHARACTERS, AXIS_CHARACTERS = 16, 32  # in a line of a group's name, of an axis's label


def draw_learning_curves(table: Path, folder: Path, actors: int) -> list[Path]:
    """Draw the learning curves of a run: the main metrics, and all others as diagnostics.

    Args:
        table: the run's `metrics.csv`.
        folder: of the pictures.
        actors: of each seed; a curve begins when each may have ended an episode.

    Returns:
        The pictures.
    """
    found = panels(table_from_first_round(metrics_table.read(table), actors))
    main = {name: found[name] for name in metrics.MAIN if name in found}
    others = {name: found[name] for name in sorted(found) if name not in main}
    empty = [name for name, lines in others.items() if _is_zero(lines)]
    others = {name: lines for name, lines in others.items() if name not in empty}
    zero = "; ".join(metrics.of(name).title.lower() for name in empty)
    seeds = max((len(seeds) for lines in found.values() for seeds in lines.values()), default=1)
    note = f"mean of {seeds} seeds; band: lowest and highest seed" if seeds > 1 else "one seed"
    pictures = []
    for stem, chosen in (("learning_curves", main), ("diagnostics", others)):
        if chosen:
            heading = f"{stem.replace('_', ' ').capitalize()} ({note})"
            left_out = f"\n0 throughout: {zero}" if zero and chosen is others else ""
            figure = _curves_figure(chosen, heading + left_out)
            pictures.append(_save(figure, folder / f"{stem}.png"))
    return pictures


def bars(
    path: Path,
    title: str,
    panels: Mapping[str, Mapping[str, Sequence[Estimate]]],
    groups: Sequence[str],
    published: Mapping[str, Mapping[str, Sequence[float]]] = MappingProxyType({}),
) -> Path:
    """Draw values with confidence intervals as grouped bars, the panels below each other.

    Args:
        path: the picture.
        title: of the whole picture.
        panels: label of the vertical axis -> method -> one bar a group.
        groups: names below the groups.
        published: of the same panels, one number a bar (NaN: there is none), drawn as a diamond.
    """
    width = min(max(1.2 + 1.4 * len(groups), NARROWEST_INCHES), WIDEST_INCHES)
    figure, axes = _grid(len(panels), columns=1, size=(width, 3.6))
    colors = method_style.colors(dict.fromkeys(name for each in panels.values() for name in each))
    for axis, (label, series) in zip(axes, panels.items(), strict=True):
        width = 0.8 / len(series)
        for number, (name, measured) in enumerate(series.items()):
            values = np.array([bar.value for bar in measured])
            low, high = np.array([(bar.low, bar.high) for bar in measured]).T
            errors = np.where(high > low, [values - low, high - values], np.nan)
            places = np.arange(len(groups)) + (number - (len(series) - 1) / 2) * width
            axis.bar(
                places,
                values,
                width * 0.9,
                yerr=errors,
                capsize=2,
                color=colors[name],
                label=method_style.title(name),
            )
            theirs = published.get(label, {}).get(name, [np.nan])
            if not np.isnan(theirs).all():
                axis.plot(places, theirs, "D", ms=6, color=colors[name], mec="black", zorder=3)
        axis.set_xticks(np.arange(len(groups)), [_wrapped(group) for group in groups])
        if len(groups) > CROWDED_GROUPS:
            for tick in axis.get_xticklabels():
                tick.set(rotation=30, horizontalalignment="right", rotation_mode="anchor")
        axis.set_ylabel(textwrap.fill(label, AXIS_CHARACTERS))
        axis.set_ylim(bottom=0)
    handles, names = axes[0].get_legend_handles_labels()
    numbers = [value for each in published.values() for values in each.values() for value in values]
    if not np.isnan(numbers).all():
        handles.append(_diamond())
        names.append("published")
    _add_legend(figure, handles, names)
    figure.suptitle(title, wrap=True)
    return _save(figure, path)


def _add_legend(
    figure: "Figure",
    handles: Sequence[Any],
    names: Sequence[str],
    columns: int = 4,
    *,
    frameon: bool = True,
) -> None:
    """Add a legend below all panels, in as many columns as the picture is wide enough for."""
    options: dict[str, Any] = {"loc": "outside lower center", "frameon": frameon}
    legend = figure.legend(handles, names, ncols=columns, **options)
    width = legend.get_window_extent().width
    if columns > 1 and width > figure.bbox.width:
        legend.remove()
        _add_legend(figure, handles, names, columns - 1, frameon=frameon)


def _diamond() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], marker="D", ls="", ms=6, color="white", markeredgecolor="black")


def _wrapped(label: str) -> str:
    """Return a label in short lines, each line of its own kept."""
    lines = (
        textwrap.wrap(line, LABEL_CHARACTERS, break_long_words=False) for line in label.split("\n")
    )
    return "\n".join(part for line in lines for part in line)


class Panel(NamedTuple):
    """One panel of lines."""

    title: str
    horizontal: str  # label of the axis
    vertical: str
    lines: Mapping[str, Curve]  # name in the legend -> line
    logarithmic: bool = False  # the vertical axis


def lines(path: Path, title: str, panels: Sequence[Panel], columns: int = 2) -> Path:
    """Draw curves with bands; a name has the same colour and dashes in all panels.

    The part of a name before a comma decides the colour, the part after it the dashes.

    Args:
        path: the picture.
        title: of the whole picture.
        panels: in their order.
        columns: of panels.
    """
    figure, axes = _grid(len(panels), columns=columns, size=(4.6, 3.1))
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    heads = list(dict.fromkeys(name.partition(", ")[0] for name in names))
    tails = list(dict.fromkeys(name.partition(", ")[2] for name in names))
    colors = method_style.colors(heads)
    drawn: dict[str, Any] = {}
    for axis, panel in zip(axes, panels, strict=True):
        for name, line in panel.lines.items():
            head, _, tail = name.partition(", ")
            handle = _draw_curve(axis, line, 1.0, colors[head])
            handle.set_linestyle(DASHES[tails.index(tail) % len(DASHES)])
            drawn[name] = handle
        if not panel.logarithmic:
            _begin_at_zero(axis, panel.lines.values())
        axis.set_title(panel.title, fontsize=11)
        axis.set_xlabel(panel.horizontal)
        axis.set_ylabel(textwrap.fill(panel.vertical, AXIS_CHARACTERS))
        axis.set_xlim(left=0)
        axis.set_yscale("log" if panel.logarithmic else "linear")
    handles = [drawn[name] for name in names]
    legend_columns = min(4, 2 * min(columns, len(panels)))
    titles = [
        ", ".join([method_style.title(n.partition(", ")[0]), *n.split(", ")[1:]]) for n in names
    ]
    _add_legend(figure, handles, titles, legend_columns, frameon=False)
    figure.suptitle(title, wrap=True)
    return _save(figure, path)


Lines = dict[str, dict[int, metrics_table.Column]]  # name of the line -> seed -> column


def panels(table: Mapping[str, dict[int, metrics_table.Column]]) -> dict[str, Lines]:
    """Return metrics by panel: `interactions/WORLD` is a line of the panel `interactions`."""
    found: dict[str, Lines] = {}
    for name, seeds in sorted(table.items()):
        panel, _, line = name.partition("/")
        if panel not in metrics.HIDDEN:
            found.setdefault(panel, {})[line or ALL_WORLDS] = seeds
    for lines in found.values():
        if len(lines) == 2 and ALL_WORLDS in lines:  # there is one world
            del lines[next(line for line in lines if line != ALL_WORLDS)]
    return found


def _is_zero(lines: Lines) -> bool:
    return not any(column.values.any() for seeds in lines.values() for column in seeds.values())


def of_line(lines: Lines, line: str) -> Curve:
    """Return the curve of a world, or of all worlds: the mean of the worlds' own means."""
    worlds = [seeds for name, seeds in lines.items() if name != ALL_WORLDS]
    if (
        line == ALL_WORLDS
        and len(worlds) > 1
        and all(seeds.keys() == worlds[0].keys() for seeds in worlds)
    ):
        return over_seeds_and_worlds(worlds)
    return over_seeds(lines[line])


def _begin_at_zero(axis: "Axes", curves: Iterable[Curve]) -> None:
    """Let the vertical axis begin at 0, unless a curve goes below it."""
    there = [curve for curve in curves if len(curve.low)]
    if there and min(curve.low.min() for curve in there) >= 0:
        highest = max(curve.high.max() for curve in there)
        axis.set_ylim(bottom=0, top=None if highest > 0 else 1)


def _curves_figure(panels: Mapping[str, Lines], title: str) -> "Figure":
    figure, axes = _grid(len(panels), columns=2, size=(4.6, 2.9))
    names = sorted({line for lines in panels.values() for line in lines}, key=_all_first)
    colors = {name: COLORS[number % len(COLORS)] for number, name in enumerate(names)}
    last = max(c.frames[-1] for p in panels.values() for s in p.values() for c in s.values())
    scale, unit = (1e6, "millions") if last >= 1e6 else (1e3, "thousands")
    drawn: dict[str, Any] = {}
    for axis, (name, lines) in zip(axes, panels.items(), strict=True):
        metric = metrics.of(name)
        curves = {line: of_line(lines, line) for line in sorted(lines, key=_all_first)}
        for line, curve in curves.items():
            drawn[line] = _draw_curve(axis, curve, scale, colors[line])
        _begin_at_zero(axis, curves.values())
        axis.set_title(metric.title, fontsize=11)
        axis.set_ylabel(metric.unit)
        axis.set_xlabel(f"frames per seed ({unit})")
        axis.set_xlim(0, last / scale)
    if len(drawn) > 1:
        handles = [drawn[name] for name in names]
        _add_legend(figure, handles, names, frameon=False)
    figure.suptitle(title, wrap=True)
    return figure


def _all_first(line: str) -> tuple[bool, str]:
    return line != ALL_WORLDS, line


def _draw_curve(axis: "Axes", line: Curve, scale: float, color: str) -> Any:
    frames = line.frames / scale
    marker = "o" if len(frames) < SPARSE_POINTS else None
    (handle,) = axis.plot(frames, line.mean, color=color, linewidth=1.4, marker=marker, ms=3)
    if (line.high > line.low).any():
        axis.fill_between(frames, line.low, line.high, color=color, alpha=0.2, linewidth=0)
    return handle


def _grid(panels: int, columns: int, size: tuple[float, float]) -> tuple["Figure", list["Axes"]]:
    # Imported here: it takes more than a second. A bare `Figure` needs no display.
    from matplotlib.figure import Figure

    columns = min(columns, panels)
    rows = -(-panels // columns)
    width = min(size[0] * columns, WIDEST_INCHES)
    figure = Figure(figsize=(width, size[1] * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[panels:]:
        axis.remove()
    for axis in axes[:panels]:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25, linewidth=0.6)
        axis.set_axisbelow(True)
    return figure, list(axes[:panels])


def _save(figure: "Figure", path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=130, format="png")
    return path
