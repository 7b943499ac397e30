"""Pictures of runs: learning curves of metrics, other curves, and grouped bars."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cbet_jax.analysis import method_style
from cbet_jax.analysis.intervals import Estimate
from cbet_jax.analysis.learning_curves import ALL_WORLDS, Curve, by_metric, over_seeds
from cbet_jax.runs import metrics, metrics_table
from cbet_jax.runs.atomic_write import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPARSE_POINTS = 20  # a curve with fewer points shows each of them
DASHES = ("-", "--", ":", "-.")
MOST_TICKS = 6  # on the horizontal axis of curves
NARROWEST_INCHES, WIDEST_INCHES = 7.0, 10.0  # a picture fits a page's width
CROWDED_GROUPS = 5  # the names of more groups are slanted
LABEL_CHARACTERS, AXIS_CHARACTERS = 16, 32  # longest line of a group's name, of an axis's label


def draw_learning_curves(table: Path, folder: Path, actors: int) -> list[Path]:
    """Draw the learning curves of a run: the main metrics, and all others as diagnostics.

    Args:
        table: the run's `metrics.csv`.
        folder: for the pictures.
        actors: actors of a seed; a curve begins when as many episodes have ended.

    Returns:
        The pictures.
    """
    found = by_metric(metrics_table.read(table), actors)
    curves = {
        name: {
            # A number, other than a mean over episodes, is that of all worlds together.
            world: over_seeds(lines if metrics.episodes_of(name) else {world: lines[world]}, world)
            for world in sorted(lines, key=lambda name: (name != ALL_WORLDS, name))
        }
        for name, lines in found.items()
    }
    zero = [
        name for name, worlds in curves.items() if not any(c.high.any() for c in worlds.values())
    ]
    zero = [name for name in zero if name not in metrics.MAIN or name == metrics.INTRINSIC]
    main = [name for name in metrics.MAIN if name in curves and name not in zero]
    others = sorted(curves.keys() - {*main, *zero})
    seeds = max((len(seeds) for lines in found.values() for seeds in lines.values()), default=1)
    note = f"mean of {seeds} seeds; band: lowest and highest seed" if seeds > 1 else "one seed"
    last = max((c.frames[-1] for worlds in curves.values() for c in worlds.values()), default=0)
    scale, unit = scale_of(int(last))
    left_out = "; ".join(metrics.of(name).title.lower() for name in zero)
    titles = {
        "learning_curves": f"Learning curves ({note})",
        "diagnostics": f"Diagnostics ({note})" + (f"\n0 throughout: {left_out}" if zero else ""),
    }
    pictures = []
    for (stem, title), chosen in zip(titles.items(), (main, others), strict=True):
        panels = [
            Panel(
                metrics.of(name).title,
                f"frames per seed ({unit})",
                metrics.of(name).unit,
                {world: c._replace(frames=c.frames / scale) for world, c in curves[name].items()},
            )
            for name in chosen
        ]
        if panels:
            pictures.append(draw_lines(folder / f"{stem}.png", title, panels))
    return pictures


def scale_of(last: int) -> tuple[float, str]:
    """Return the unit of an axis that ends at so many frames, and its name."""
    return (1e6, "millions") if last >= 1e6 else (1e3, "thousands")


def draw_bars(
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
        panels: label of the vertical axis -> method -> a bar for each group.
        groups: names below the groups.
        published: a number for each bar (NaN: not printed), drawn as a diamond.
    """
    width = min(max(1.2 + 1.4 * len(groups), NARROWEST_INCHES), WIDEST_INCHES)
    figure, axes = grid(len(panels), columns=1, size=(width, 3.6))
    colors = method_style.colors(dict.fromkeys(name for each in panels.values() for name in each))
    drawn: dict[str, Any] = {}
    for axis, (label, series) in zip(axes, panels.items(), strict=True):
        bar_width = 0.8 / len(series)
        for number, (name, measured) in enumerate(series.items()):
            values = np.array([bar.value for bar in measured])
            low, high = np.array([(bar.low, bar.high) for bar in measured]).T
            errors = np.where(high > low, [values - low, high - values], np.nan)
            places = np.arange(len(groups)) + (number - (len(series) - 1) / 2) * bar_width
            drawn[name] = axis.bar(
                places, values, bar_width * 0.9, yerr=errors, capsize=2, color=colors[name]
            )
            theirs = published.get(label, {}).get(name, [np.nan])
            if not np.isnan(theirs).all():
                axis.plot(places, theirs, "D", ms=6, color=colors[name], mec="black", zorder=3)
        axis.set_xticks(np.arange(len(groups)), [_wrapped(plain(group)) for group in groups])
        if len(groups) > CROWDED_GROUPS:
            for tick in axis.get_xticklabels():
                tick.set(rotation=30, horizontalalignment="right", rotation_mode="anchor")
        axis.set_ylabel(textwrap.fill(label, AXIS_CHARACTERS))
        if not any(bar.value < 0 for bars in series.values() for bar in bars):
            axis.set_ylim(bottom=0)
    handles, names = [*drawn.values()], list(map(method_style.title, drawn))
    numbers = [value for each in published.values() for values in each.values() for value in values]
    if not np.isnan(numbers).all():
        handles.append(_diamond())
        names.append("published")
    _add_legend(figure, handles, names)
    figure.suptitle(plain(title), wrap=True)
    return save(path, figure, dpi=130)


def _add_legend(
    figure: "Figure",
    handles: Sequence[Any],
    names: Sequence[str],
    columns: int = 4,
    *,
    frameon: bool = True,
) -> None:
    """Add a legend below all panels, in as many columns as fit; the picture grows by it."""
    options: dict[str, Any] = {"loc": "outside lower center", "frameon": frameon}
    legend = figure.legend(handles, list(map(plain, names)), ncols=columns, **options)
    extent = legend.get_window_extent()
    if columns > 1 and extent.width > figure.bbox.width:
        legend.remove()
        return _add_legend(figure, handles, names, columns - 1, frameon=frameon)
    figure.set_figheight(figure.get_figheight() + extent.height / figure.dpi)


def _diamond() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], marker="D", ls="", ms=6, color="white", markeredgecolor="black")


def plain(text: str) -> str:
    """Return text in which no name is taken for mathematics."""
    return text.replace("$", r"\$")


def _wrapped(label: str) -> str:
    """Return a label in short lines; its own line breaks stay."""
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
    speed: float | None = None  # on the horizontal axis, per minute: a second axis shows minutes
    #: by a line's name, where it is dotted: seeds have ended, and their last values continue
    flat_from: Mapping[str, float] = MappingProxyType({})


def draw_lines(
    path: Path, title: str, panels: Sequence[Panel], columns: int = 2, methods: bool = True
) -> Path:
    """Draw curves with bands; a name has the same colour and dashes in all panels.

    The part of a name before a comma decides the colour, the part after it the dashes.

    Args:
        path: the picture.
        title: of the whole picture.
        panels: in their order.
        columns: of panels.
        methods: whether the legend has the titles of methods for their names.
    """
    size = (max(4.6, NARROWEST_INCHES / len(panels)), 3.1)
    figure, axes = grid(len(panels), columns=columns, size=size)
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    heads = list(dict.fromkeys(name.partition(", ")[0] for name in names))
    tails = list(dict.fromkeys(name.partition(", ")[2] for name in names))
    colors = method_style.colors(heads)
    drawn: dict[str, Any] = {}
    for axis, panel in zip(axes, panels, strict=True):
        for name, line in panel.lines.items():
            head, _, tail = name.partition(", ")
            handle = _draw_curve(axis, line, colors[head], panel.flat_from.get(name, np.inf))
            handle.set_linestyle(DASHES[tails.index(tail) % len(DASHES)])
            drawn[name] = handle
        if not panel.logarithmic:
            _begin_at_zero(axis, panel.lines.values())
        axis.set_title(plain(panel.title), fontsize=11)
        axis.set_xlabel(panel.horizontal)
        if panel.speed:
            _add_minutes(axis, panel.speed)
        axis.set_ylabel(textwrap.fill(panel.vertical, AXIS_CHARACTERS))
        axis.set_xlim(left=0)
        axis.locator_params(axis="x", nbins=MOST_TICKS)
        axis.set_yscale("log" if panel.logarithmic else "linear")
    if names != [ALL_WORLDS]:
        handles = [drawn[name] for name in names]
        legend_columns = min(4, 2 * min(columns, len(panels)))
        title_of = method_style.title if methods else str
        titles = [", ".join([title_of(h), *tail]) for h, *tail in (n.split(", ") for n in names)]
        _add_legend(figure, handles, titles, legend_columns, frameon=False)
    figure.suptitle(plain(title), wrap=True)
    return save(path, figure, dpi=130)


def _add_minutes(axis: "Axes", speed: float) -> None:
    both = (lambda x: x / speed), (lambda minutes: minutes * speed)
    above = axis.secondary_xaxis("top", functions=both)
    above.set_xlabel("minutes for one seed", fontsize=9)
    above.locator_params(axis="x", nbins=MOST_TICKS)


def _begin_at_zero(axis: "Axes", curves: Iterable[Curve]) -> None:
    """Let the vertical axis begin at 0, unless a curve goes below it."""
    there = [curve for curve in curves if len(curve.low)]
    if there and min(curve.low.min() for curve in there) >= 0:
        axis.set_ylim(bottom=0, top=None if max(curve.high.max() for curve in there) > 0 else 1)


def _draw_curve(axis: "Axes", line: Curve, color: str, flat_from: float = np.inf) -> Any:
    marker = "o" if len(line.frames) < SPARSE_POINTS else None
    played = line.frames <= flat_from
    style: dict[str, Any] = {"color": color, "linewidth": 1.4}
    (handle,) = axis.plot(line.frames[played], line.mean[played], marker=marker, ms=3, **style)
    if not played.all():
        shown = slice(max(int(played.sum()) - 1, 0), None)
        axis.plot(line.frames[shown], line.mean[shown], dashes=(1, 2), alpha=0.6, **style)
    if (line.high > line.low).any():
        axis.fill_between(line.frames, line.low, line.high, color=color, alpha=0.2, linewidth=0)
    return handle


def grid(panels: int, columns: int, size: tuple[float, float]) -> tuple["Figure", list["Axes"]]:
    """Return a figure of empty panels in the style of all figures.

    Args:
        panels: number of panels.
        columns: panels side by side.
        size: width and height of a panel, in inches.
    """
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


def save(path: Path, figure: "Figure", dpi: int = 110) -> Path:
    """Write a PNG atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=dpi, format="png")
    return path
