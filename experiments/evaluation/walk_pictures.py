"""Pictures of walks: how far they lead in each scene, and where, drawn over its map."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cbet_jax.analysis import figures, intervals, method_style
from cbet_jax.analysis.figures import Panel
from cbet_jax.analysis.learning_curves import ALL_WORLDS, Curve, over_seeds
from cbet_jax.runs import metrics_table
from cbet_jax.runs.metrics_table import Column
from envs.habitat.simulator import FloorMap
from experiments.evaluation.walks import Places, Walked, firsts, on_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALE = 0.45  # how much of a map's own contrast is left below the heat
COLUMN_INCHES, ROW_INCHES = 3.6, 3.3
POINTS = 51  # a curve is drawn through so many


class Pretraining(NamedTuple):
    """What policies were trained in."""

    name: str  # the policies' name in the table
    scene: str
    metrics: Path  # the run's table


def heat_maps(path: Path, walked: Sequence[Walked], title: str) -> Path:
    """Draw how long each policy's first seed was where: a row for each policy, a column a scene."""
    from matplotlib.figure import Figure  # imported here: it takes more than a second

    names = list(walked[0].places)
    size = (COLUMN_INCHES * len(walked) + 0.6, ROW_INCHES * len(names) + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(names), len(walked), squeeze=False)
    for column, (scene, drawn, places) in enumerate(walked):
        first = {name: next(iter(places[name].values())) for name in names}
        counts = {name: on_map(walks, drawn) for name, walks in first.items()}
        most = max(int(count.max()) for count in counts.values())
        for row, name in enumerate(names):
            image = _draw(axes[row, column], drawn, counts[name], most)
            named = figures.plain(f"{scene}: {method_style.title(name)}")
            axes[row, column].set_title(named, fontsize=10)
        figure.colorbar(image, ax=axes[:, column], label="steps in a cell", shrink=0.7)
    figure.suptitle(title, wrap=True)
    return figures.save(path, figure)


def _draw(axis: "Axes", drawn: FloorMap, counts: np.ndarray, most: int) -> Any:
    from matplotlib.colors import LogNorm

    (x, z), (rows, columns) = drawn.corner, drawn.walkable.shape
    extent = (x, x + columns * drawn.cell, z + rows * drawn.cell, z)
    grey = drawn.picture.mean(axis=2) / 255
    axis.imshow(1 - PALE * (1 - grey), cmap="gray", vmin=0, vmax=1, extent=extent)
    axis.contour(
        drawn.walkable, [0.5], colors="#0072B2", linewidths=0.6, extent=extent, origin="upper"
    )
    heat = np.ma.masked_equal(counts, 0)
    axis.set_xticks([])
    axis.set_yticks([])
    norm = LogNorm(1, max(most, 2))
    return axis.imshow(heat, cmap="plasma", norm=norm, extent=extent, interpolation="nearest")


def coverage(
    path: Path, title: str, pretraining: Sequence[Panel], walked: Sequence[Walked]
) -> Path:
    """Draw how the distinct positions grow: in pre-training, and in an episode of each scene."""
    panels = []
    for scene, _, places in walked:
        lines = {name: _growth(seeds) for name, seeds in places.items()}
        panels.append(Panel(scene, "steps", "distinct positions", lines))
    return figures.draw_lines(path, title, [*pretraining, *panels])


def of_pretraining(runs: Sequence[Pretraining]) -> list[Panel]:
    """Return how many distinct positions pre-training has visited, over its frames.

    There is a panel for each scene, without the runs whose tables have no such numbers (they have
    just begun).
    """
    found: dict[str, dict[str, dict[int, Column]]] = {}
    for run in runs:
        table = metrics_table.read(run.metrics) if run.metrics.is_file() else {}
        if seeds := table.get("positions"):
            found.setdefault(run.scene, {}).setdefault(run.name, {}).update(seeds)
    return [
        Panel(
            f"all of pre-training in {scene} (band: all seeds)",
            "frames",
            "distinct positions",
            {name: over_seeds({ALL_WORLDS: seeds}) for name, seeds in lines.items()},
        )
        for scene, lines in found.items()
    ]


def _growth(walks: Mapping[int, Places]) -> Curve:
    """Return the mean and its interval over seeds, or one seed's episodes, at `POINTS` steps."""
    seeds = [np.cumsum([firsts(episode) for episode in each], axis=1) for each in walks.values()]
    so_far = np.array([each.mean(axis=0) for each in seeds]) if len(seeds) > 1 else seeds[0]
    steps = np.unique(np.linspace(0, so_far.shape[1] - 1, POINTS).astype(int))
    return Curve(steps, *np.array([intervals.mean(so_far[:, step]) for step in steps]).T)
