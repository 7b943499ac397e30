"""Pictures that are put together and saved, but not rendered: layout and text take the time."""

from pathlib import Path
from typing import Any

from PIL import Image

from cbet_jax.analysis import figures

RENDERING = {name: getattr(figures, name) for name in ("_save", "_curves_figure")}


def save_one_pixel(figure: Any, path: Path) -> Path:
    """Write a PNG of one pixel in the place of a figure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (1, 1)).save(path, format="png")
    return path


def leave_unrendered(patch: Any) -> None:
    """Save all figures of `cbet_jax.analysis.figures` as one pixel, until `patch` is undone.

    Learning curves, which every run has, are not even put together.
    """
    patch.setattr(figures, "_save", save_one_pixel)
    patch.setattr(figures, "_curves_figure", lambda *_: None)


def render(patch: Any) -> None:
    """Render figures after all, until `patch` is undone."""
    for name, function in RENDERING.items():
        patch.setattr(figures, name, function)
