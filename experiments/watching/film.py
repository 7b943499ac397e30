"""Frames of a played episode, and the files that they go to: GIF, MP4 or PNG."""

import os
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import imageio_ffmpeg
import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from cbet_jax.config import SettingsError
from envs.minigrid import views
from envs.minigrid.render import SPRITE_SIZE, agents_view, whole_grid
from experiments.watching.playing import Moment, facts

LARGEST_GRID = 640  # pixels; larger grids get smaller tiles
MARGIN, LINE, BLOCK = 16, 22, 16  # pixels; video codecs want sizes in blocks
COLUMN = views.VIEW_SIZE * SPRITE_SIZE
LABEL_WIDTH, TEXT_SIZE = 128, 15
PAPER, INK, PALE_INK, EVENT_INK = (24, 24, 28), (240, 240, 240), (160, 160, 168), (255, 200, 60)
# ffmpeg is started without code of ours between fork and exec, which JAX's threads would not bear.
os.environ.setdefault("IMAGEIO_FFMPEG_NO_PREVENT_SIGINT", "1")
CRF = 18  # constant rate factor of x264; 18 looks lossless

Picture = UInt8[np.ndarray, "height width 3"]


def frame(title: str, moment: Moment) -> Picture:
    """Draws the whole grid, beside it what the agent sees and what the last action brought."""
    width, height = moment.state.level.size.tolist()
    grid = whole_grid(moment.state, min(SPRITE_SIZE, LARGEST_GRID // max(width, height)))
    lines = facts(moment)
    below_view = MARGIN + COLUMN + LINE * len(lines)
    size = (grid.shape[1] + COLUMN + 3 * MARGIN, LINE + max(grid.shape[0], below_view) + 2 * MARGIN)
    canvas = Image.new("RGB", tuple(-(-pixels // BLOCK) * BLOCK for pixels in size), PAPER)
    draw = ImageDraw.Draw(canvas)
    draw.text((MARGIN, MARGIN // 2), title, INK, font())
    left, top = grid.shape[1] + 2 * MARGIN, MARGIN + LINE
    canvas.paste(Image.fromarray(grid), (MARGIN, top))
    canvas.paste(Image.fromarray(agents_view(moment.state)), (left, top))
    for row, (label, value) in enumerate(lines):
        y = top + COLUMN + MARGIN + row * LINE
        draw.text((left, y), label, PALE_INK, font())
        draw.text((left + LABEL_WIDTH, y), value, EVENT_INK if label == "event" else INK, font())
    return np.asarray(canvas)


@cache
def font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(TEXT_SIZE)


def write(path: Path, frames: Iterator[Picture], fps: int) -> int:
    """Writes frames to a new file, complete or not at all, and returns how many.

    Args:
        path: its suffix is one of `WRITERS`. A PNG gets the first frame alone.
        frames: at least one, all of one size; they are drawn one after another.
        fps: frames a second.

    Raises:
        SettingsError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=path.parent) as folder:
            temporary = Path(folder) / path.name
            count = WRITERS[path.suffix.lower()](temporary, frames, fps)
            if path.exists():  # somebody else has made it meanwhile
                raise SettingsError(f"{path} already exists: choose another name")
            temporary.rename(path)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SettingsError(f"cannot write {path}: {reason}") from None
    return count


def _write_gif(path: Path, frames: Iterator[Picture], fps: int) -> int:
    images = (Image.fromarray(picture).quantize(dither=Image.Dither.NONE) for picture in frames)
    next(images).save(path, save_all=True, append_images=images, duration=1000 // fps, loop=0)
    with Image.open(path) as written:
        return getattr(written, "n_frames", 1)


def _write_mp4(path: Path, frames: Iterator[Picture], fps: int) -> int:
    first = next(frames)
    size = (first.shape[1], first.shape[0])
    params = ["-crf", str(CRF)]
    writer = imageio_ffmpeg.write_frames(
        path, size, fps=fps, quality=None, macro_block_size=BLOCK, output_params=params
    )
    writer.send(None)  # starts ffmpeg
    count = 0
    for picture in chain([first], frames):
        writer.send(np.ascontiguousarray(picture))
        count += 1
    writer.close()
    return count


def _write_png(path: Path, frames: Iterator[Picture], fps: int) -> int:
    Image.fromarray(next(frames)).save(path)
    return 1


WRITERS: dict[str, Callable[[Path, Iterator[Picture], int], int]] = {
    ".gif": _write_gif,
    ".mp4": _write_mp4,
    ".png": _write_png,
}
