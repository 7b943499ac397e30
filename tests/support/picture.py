"""Draw one level of each environment: `python -m tests.support.picture NEW.png`."""

import sys

import jax
from PIL import Image, ImageDraw, ImageFont

from envs.minigrid import rules
from envs.minigrid.generators import NAMES, find, sample_levels
from envs.minigrid.render import SPRITE_SIZE, whole_grid
from experiments.watching.crop import bounding_box

COLUMNS = 8
SIDE, MARGIN, LINE, TEXT_SIZE = 138, 6, 18, 12  # pixels


def draw(name: str) -> Image.Image:
    """Draw the part of the grid that a level uses, scaled down to fit a square."""
    levels, _ = jax.jit(lambda key: sample_levels(find(name), key, 1))(jax.random.key(0))
    state = rules.start(jax.tree.map(lambda leaf: leaf[0], levels))
    window, tile = bounding_box(jax.device_get(state.level)), SPRITE_SIZE
    rows, columns = (slice(part.start * tile, part.stop * tile) for part in window)
    picture = Image.fromarray(whole_grid(state, tile)[rows, columns])
    scale = min(SIDE / max(picture.size), 1.0)
    size = round(picture.width * scale), round(picture.height * scale)
    return picture.resize(size, Image.Resampling.BOX)


def main(path: str) -> None:
    """Lay the pictures out in rows, each below its name."""
    width, height = SIDE + 2 * MARGIN, SIDE + LINE + 2 * MARGIN
    canvas = Image.new("RGB", (COLUMNS * width, -(-len(NAMES) // COLUMNS) * height), "white")
    write, font = ImageDraw.Draw(canvas), ImageFont.load_default(TEXT_SIZE)
    for number, name in enumerate(NAMES):
        left, top = number % COLUMNS * width + MARGIN, number // COLUMNS * height + MARGIN
        write.text((left, top), name, "black", font)
        canvas.paste(draw(name), (left, top + LINE))
    canvas.save(path, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1])
