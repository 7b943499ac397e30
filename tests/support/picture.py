"""Draws worlds as we do beside MiniGrid's own pictures: `python -m tests.support.picture`.

One level of each environment, rebuilt in MiniGrid from its export. Needs the extra `dev`.
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
from envs.minigrid import rules
from envs.minigrid.export import export
from envs.minigrid.generators import sample_levels
from envs.minigrid.render import SPRITE_SIZE, whole_grid
from envs.registry import UnknownEnvironment, find, names
from experiments.common import cli

MODULE = "tests.support.picture"
SIDE, MARGIN, LINE = 256, 12, 22  # pixels: the longer side of one picture, the space between
TEXT_SIZE = 15
FAMILY = re.compile(r"[A-Za-z]+?(?=-|\d|S\d|N\d|$)")  # what stands before the sizes in a name


@dataclass(frozen=True)
class Options:
    """Draws one level of each environment twice: ours, and MiniGrid's own picture of it."""

    out: Path = Path("rendering.png")  # a new PNG
    envs: tuple[str, ...] = ()  # environments (default: the first of each family)
    all: bool = False  # every environment
    seed: int = 0  # of the levels
    columns: int = 4  # pairs side by side


class Pair(NamedTuple):
    """Two pictures of one level."""

    name: str
    ours: np.ndarray  # uint8[height, width, 3]
    theirs: np.ndarray


def main(arguments: Sequence[str] | None = None) -> None:
    """Draws what the command line asks for, and says how far the pictures lie apart."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with cli.user_errors(UnknownEnvironment):
        options: Options = cli.parse(Options, arguments, MODULE)
        pairs = []
        for name in chosen(options):
            pairs.append(draw_pair(name, options.seed))
            apart = np.abs(pairs[-1].ours.astype(int) - pairs[-1].theirs)
            print(f"{name}: the pictures differ by at most {apart.max()} of 255", flush=True)
        sheet(pairs, options.columns).save(options.out, optimize=True)
    print(f"saved: {options.out}")


def chosen(options: Options) -> tuple[str, ...]:
    """Returns the environments to draw.

    Raises:
        SettingsError: the picture cannot be made. UnknownEnvironment: no such environment.
    """
    if find_spec("minigrid") is None:
        raise SettingsError("minigrid is not installed; it comes with the extra dev")
    if options.columns < 1 or options.seed < 0:
        raise SettingsError("columns must be at least 1, and seed at least 0")
    if options.out.exists() or not options.out.absolute().parent.is_dir():
        raise SettingsError(f"{options.out} already exists, or its directory does not")
    for name in options.envs:
        find(name)
    first_of_family = {FAMILY.match(name)[0]: name for name in reversed(names())}
    some = tuple(name for name in names() if name in first_of_family.values())
    return options.envs or (names() if options.all else some)


def draw_pair(name: str, seed: int) -> Pair:
    """Draws a level of the environment, and has MiniGrid draw the same.

    Raises:
        SettingsError: the generator has failed.
    """
    from tests.support import minigrid_reference

    levels, is_valid = jax.jit(lambda key: sample_levels(find(name), key, 1))(jax.random.key(seed))
    if not is_valid.all():
        raise SettingsError(f"no level of {name} could be drawn with seed {seed}")
    state = rules.start(jax.tree.map(lambda leaf: leaf[0], levels))
    env = minigrid_reference.make(name)
    minigrid_reference.rebuild(export(state), env)
    theirs = env.get_frame(highlight=True, tile_size=SPRITE_SIZE)
    return Pair(name, whole_grid(state), theirs.astype(np.uint8))


def sheet(pairs: Sequence[Pair], columns: int) -> Image.Image:
    """Lays pairs out in rows, each picture small enough for the same square."""
    columns = min(columns, len(pairs))
    width, height = 2 * SIDE + 4 * MARGIN, SIDE + LINE + 2 * MARGIN
    rows = -(-len(pairs) // columns)
    canvas = Image.new("RGB", (columns * width, rows * height), "white")
    write, font = ImageDraw.Draw(canvas), ImageFont.load_default(TEXT_SIZE)
    for number, pair in enumerate(pairs):
        left, top = number % columns * width + MARGIN, number // columns * height + MARGIN
        for picture, title in ((pair.ours, pair.name), (pair.theirs, "MiniGrid")):
            scale = min(SIDE / max(picture.shape), 1.0)
            size = (round(picture.shape[1] * scale), round(picture.shape[0] * scale))
            small = Image.fromarray(picture).resize(size, Image.Resampling.BOX)
            write.text((left, top), title, "black", font)
            canvas.paste(small, (left, top + LINE))
            left += SIDE + MARGIN
    return canvas


if __name__ == "__main__":
    main()
