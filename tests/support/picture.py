"""Draw one level of each environment: `python -m tests.support.picture`. Needs the extra `dev`.

With `--pairs`, MiniGrid's own picture of the same level is next to each of ours.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from cbet_jax.config import SettingsError
from envs.errors import UnknownEnvironment
from envs.minigrid import rules
from envs.minigrid.export import export
from envs.minigrid.generators import NAMES, find, sample_levels
from envs.minigrid.render import SPRITE_SIZE, whole_grid
from envs.minigrid.rules import State
from experiments.common import cli
from experiments.watching.crop import bounding_box

MODULE = "tests.support.picture"
MARGIN, LINE, TEXT_SIZE = 6, 18, 12  # pixels
FAMILY = re.compile(r"[A-Za-z]+?(?=-|\d|S\d|N\d|$)")  # the part of a name before the sizes


@dataclass(frozen=True)
class Options:
    """Draws one level of each environment."""

    out: Path = Path("environments.png")  # a new PNG
    envs: tuple[str, ...] = ()  # environments (default: the first of each family)
    all: bool = False  # every environment
    pairs: bool = False  # MiniGrid's own picture of the same level, too
    seed: int = 0  # of the levels
    columns: int = 8  # pictures side by side
    side: int = 138  # pixels of the longer side of a picture


class Captioned(NamedTuple):
    """A picture and its caption."""

    caption: str
    picture: np.ndarray  # uint8[height, width, 3]


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw what the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with cli.user_errors(UnknownEnvironment):
        options: Options = cli.parse(Options, arguments, MODULE)
        pictures: list[Captioned] = []
        for name in chosen(options):
            state = first_state(name, options.seed)
            if options.pairs:
                pictures += draw_pair(name, state)
            else:
                pictures.append(Captioned(name, cropped(state)))
        sheet(pictures, options.columns, options.side).save(options.out, optimize=True)
    print(f"saved: {options.out}")


def chosen(options: Options) -> tuple[str, ...]:
    """Return the environments to draw.

    Raises:
        SettingsError: the picture cannot be made.
        UnknownEnvironment: there is no such environment.
    """
    if options.pairs and find_spec("minigrid") is None:
        raise SettingsError("minigrid is not installed; it comes with the extra dev")
    if min(options.columns, options.side) < 1 or options.seed < 0:
        raise SettingsError("columns and side must be at least 1, and seed at least 0")
    if options.out.exists() or not options.out.absolute().parent.is_dir():
        raise SettingsError(f"{options.out} already exists, or its directory does not")
    for name in options.envs:
        find(name)
    first_of_family = {FAMILY.match(name)[0]: name for name in reversed(NAMES)}
    some = tuple(name for name in NAMES if name in first_of_family.values())
    return options.envs or (NAMES if options.all else some)


def first_state(name: str, seed: int) -> State:
    """Return the start of a level of the environment.

    Raises:
        SettingsError: the generator has failed.
    """
    generator = find(name)
    levels, is_valid = jax.jit(lambda key: sample_levels(generator, key, 1))(jax.random.key(seed))
    if not is_valid.all():
        raise SettingsError(f"no level of {name} could be sampled with seed {seed}")
    return rules.start(jax.tree.map(lambda leaf: leaf[0], levels))


def cropped(state: State) -> np.ndarray:
    """Draw the part of the grid that the level uses."""
    window, tile = bounding_box(jax.device_get(state.level)), SPRITE_SIZE
    rows, columns = (
        slice(part.start * tile, part.stop * tile) for part in (window.rows, window.columns)
    )
    return whole_grid(state, tile)[rows, columns]


def draw_pair(name: str, state: State) -> list[Captioned]:
    """Draw a level, have MiniGrid draw the same, and print how far the pictures differ."""
    from tests.support import minigrid_reference

    env = minigrid_reference.make(name)
    minigrid_reference.rebuild(export(state), env)
    ours, theirs = whole_grid(state), env.get_frame(highlight=True, tile_size=SPRITE_SIZE)
    difference = np.abs(ours.astype(int) - theirs).max()
    print(f"{name}: the pictures differ by at most {difference} of 255", flush=True)
    return [Captioned(name, ours), Captioned("MiniGrid", theirs.astype(np.uint8))]


def sheet(pictures: Sequence[Captioned], columns: int, side: int) -> Image.Image:
    """Lay pictures out in rows, each scaled down to fit a square.

    Args:
        pictures: the pictures and their captions.
        columns: how many are in a row.
        side: side of the square in pixels.
    """
    columns = min(columns, len(pictures))
    width, height = side + 2 * MARGIN, side + LINE + 2 * MARGIN
    rows = -(-len(pictures) // columns)
    canvas = Image.new("RGB", (columns * width, rows * height), "white")
    write, font = ImageDraw.Draw(canvas), ImageFont.load_default(TEXT_SIZE)
    for number, (caption, picture) in enumerate(pictures):
        left, top = number % columns * width + MARGIN, number // columns * height + MARGIN
        scale = min(side / max(picture.shape), 1.0)
        size = (round(picture.shape[1] * scale), round(picture.shape[0] * scale))
        small = Image.fromarray(picture).resize(size, Image.Resampling.BOX)
        write.text((left, top), caption, "black", font)
        canvas.paste(small, (left, top + LINE))
    return canvas


if __name__ == "__main__":
    main()
