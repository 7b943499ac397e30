"""What takes the time of tests left out: pictures are of one pixel, or runs are not trained."""

from pathlib import Path
from typing import Any

from PIL import Image

from cbet_jax.analysis import figures
from cbet_jax.runs.host_loop import Outcome
from experiments.common import training

RENDERING = {name: getattr(figures, name) for name in ("draw_lines", "draw_bars")}


def save_one_pixel(path: Path, *_: Any) -> Path:
    """Write a PNG of one pixel in the place of a figure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (1, 1)).save(path, format="png")
    return path


def leave_unrendered(patch: Any) -> None:
    """Save all figures of `cbet_jax.analysis.figures` as one pixel, until `patch` is undone."""
    for name in RENDERING:
        patch.setattr(figures, name, save_one_pixel)


def render(patch: Any) -> None:
    """Render figures after all, until `patch` is undone."""
    for name, function in RENDERING.items():
        patch.setattr(figures, name, function)


def leave_untrained(patch: Any) -> None:
    """Begin runs, and train nothing, until `patch` is undone."""
    outcome = Outcome(0, finished=False, trained=False, signal=0)
    patch.setattr(training, "train_together", lambda *_: [outcome])
