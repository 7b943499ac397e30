"""Show what agents see in scenes of rooms: `python -m experiments.habitat_pictures`.

A row for each scene: the view from one place, and the panorama there, side by side.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from cbet_jax.config import Axis, HabitatSettings, SettingsError
from cbet_jax.setting_types import Episodes, NonNegativeInt, check_fields
from envs.habitat.simulator import VIEW_SIZE, SimulatorError
from envs.habitat.workers.pool import WorkerPool
from experiments.common import cli, habitat
from experiments.common.outputs import RUNS
from experiments.common.screen import Screen
from experiments.watching.film import INK, LINE, MARGIN, PALE_INK, PAPER, Picture, font, write
from experiments.watching.rooms_film import SIDES

MODULE = "experiments.habitat_pictures"
SCENES = ("living_room", "hotel_suite", "family_flat", "large_flat")
TILE = 3 * VIEW_SIZE  # pixels
SHADES = 32  # of each colour channel, when colours are counted


@dataclass(frozen=True)
class HabitatPictureOptions:
    """Show what agents see in scenes of rooms."""

    scenes: tuple[str, ...] = SCENES  # paths, or names that the simulator knows
    simulator: str = "raycast"  # or habitat_sim, or the path of a file that defines `open_scene`
    folder: str | None = None  # of the data set that scenes are named in (None: they are paths)
    up: Axis | None = None  # axis that points up in the files (None: as they say)
    simulator_python: str | None = None  # the interpreter that the simulator is installed in
    starts: Episodes = 24  # places drawn in each scene, of which the most colourful is shown
    seed: NonNegativeInt = 0  # of the first of them
    out: Path | None = None  # a new PNG (default: one in runs/)

    def __post_init__(self) -> None:
        if not self.scenes:
            raise SettingsError("name at least one scene")
        check_fields(self)
        if self.out is not None and self.out.suffix.lower() != ".png":
            raise SettingsError(f"out must name a .png, not {self.out}")
        if self.out is not None and self.out.exists():
            raise SettingsError(f"{self.out} already exists: choose another name")


class Seen(NamedTuple):
    """What is seen from one place."""

    view: np.ndarray  # uint8[64, 64, 3]
    panorama: np.ndarray  # uint8[4, 64, 64, 3]


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the picture that the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors(SimulatorError):
        options: HabitatPictureOptions = cli.parse(HabitatPictureOptions, arguments, MODULE)
        out = options.out or RUNS / f"habitat-pictures-{datetime.now():%Y%m%d-%H%M%S}.png"
        seen = list(look(options))
        write(out, iter([draw(seen)]), 1)
        console.print(f"saved: {out}", soft_wrap=True, highlight=False)


def look(options: HabitatPictureOptions) -> Iterator[tuple[str, Seen]]:
    """Yield each scene's name and what is seen in it.

    Raises:
        SimulatorError: a scene cannot be opened.
    """
    played = HabitatSettings(simulator=options.simulator, folder=options.folder, up=options.up)
    for scene in options.scenes:
        workers = WorkerPool(habitat.process_settings(scene, played, options.simulator_python), 1)
        try:
            yield Path(scene).name.partition(".")[0], most_colourful(workers, options)
        finally:
            workers.close()


def most_colourful(workers: WorkerPool, options: HabitatPictureOptions) -> Seen:
    """Draw some places, and return what is seen from the one with the most colours."""
    found = []
    for seed in range(options.seed, options.seed + options.starts):
        if workers.reset([seed])[0] is not None:
            found.append(Seen(workers.images.views[0].copy(), workers.images.panoramas[0].copy()))
    if not found:
        raise SimulatorError("the simulator was lost at every start")
    return max(found, key=colours)


def colours(seen: Seen) -> int:
    """Return the number of colours in the view, plus that in the dullest side of the panorama."""
    numbers = [
        len(np.unique(image.reshape(-1, 3) // (256 // SHADES), axis=0))
        for image in (seen.view, *seen.panorama)
    ]
    return numbers[0] + min(numbers[1:])


def draw(scenes: Sequence[tuple[str, Seen]]) -> Picture:
    """Draw a row for each scene, by its name."""
    columns = 1 + len(SIDES)
    size = (columns * (TILE + MARGIN) + MARGIN, len(scenes) * (TILE + LINE + MARGIN) + MARGIN)
    canvas = Image.new("RGB", size, PAPER)
    pen = ImageDraw.Draw(canvas)
    for row, (name, seen) in enumerate(scenes):
        sides = {side: seen.panorama[number] for side, number in SIDES.items()}
        top = MARGIN + row * (TILE + LINE + MARGIN)
        for column, (label, image) in enumerate({name: seen.view, **sides}.items()):
            left = MARGIN + column * (TILE + MARGIN)
            tile = Image.fromarray(image).resize((TILE, TILE), Image.Resampling.NEAREST)
            pen.text((left, top), label, PALE_INK if column else INK, font())
            canvas.paste(tile, (left, top + LINE))
    return np.asarray(canvas)


if __name__ == "__main__":
    main()
