"""Draw the frames of an episode, and write them to a GIF, an MP4 or a PNG."""

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFont, ImageStat

from cbet_jax.config import SettingsError
from cbet_jax.runs.atomic_write import give_name, temporary_file
from envs.minigrid import views
from envs.minigrid.render import SPRITE_SIZE, Picture, agents_view, whole_grid
from experiments.common.outputs import write_new
from experiments.watching.crop import Window, bounding_box, enlarge
from experiments.watching.playing import Moment, facts

LARGEST_GRID = 640  # pixels; larger grids get smaller tiles
MARGIN, LINE, BLOCK = 16, 22, 16  # pixels; sizes are multiples of a video codec's block
COLUMN = views.VIEW_SIZE * SPRITE_SIZE  # pixels
LABEL_WIDTH, TEXT_SIZE = 128, 15  # pixels
PAPER, INK, PALE_INK, EVENT_INK = (24, 24, 28), (240, 240, 240), (160, 160, 168), (255, 200, 60)
SHORT_FACTS = ("step", "action", "interactions", "event")  # shown below grids side by side
# ffmpeg is started without code of ours between fork and exec, which JAX's threads would not bear.
os.environ.setdefault("IMAGEIO_FFMPEG_NO_PREVENT_SIGINT", "1")
FURTHEST_COLOR, FURTHEST_MEAN = 48, 1.0  # allowed differences of a GIF's colours, of 255
CRF = 18  # constant rate factor of x264; 18 looks lossless


def film(
    title: str, players: Sequence[str], scenes: Iterable[tuple[Moment, ...]]
) -> Iterator[Picture]:
    """Draw scenes, a moment for each player, in pictures of one size cropped to their levels."""
    scenes = list(scenes)
    windows = _windows([scene[0] for scene in scenes])
    for scene, window in zip(scenes, windows, strict=True):
        if len(scene) == 1:
            yield frame(f"{title}: {players[0]}", scene[0], window)
        else:
            yield frame_side_by_side(title, players, scene, window)


def _windows(moments: Sequence[Moment]) -> list[Window]:
    """Return a window for each moment, constant within an episode, all of one size."""
    first = {moment.episode: moment.state.level for moment in reversed(moments)}
    boxes = {episode: bounding_box(level) for episode, level in first.items()}
    height, width = (
        max(part.stop - part.start for part in parts) for parts in zip(*boxes.values(), strict=True)
    )
    windows = {
        episode: enlarge(box, height, width, first[episode]) for episode, box in boxes.items()
    }
    return [windows[moment.episode] for moment in moments]


def frame(title: str, moment: Moment, window: Window) -> Picture:
    """Draw a window of the grid beside the agent's view and the facts of the moment."""
    grid = _grid(moment, window)
    lines = facts(moment)
    below_view = MARGIN + COLUMN + LINE * len(lines)
    height = LINE + max(grid.shape[0], below_view) + 2 * MARGIN
    canvas, pen = titled_canvas(title, grid.shape[1] + COLUMN + 3 * MARGIN, height)
    left, top = grid.shape[1] + 2 * MARGIN, MARGIN + LINE
    canvas.paste(Image.fromarray(grid), (MARGIN, top))
    canvas.paste(Image.fromarray(agents_view(moment.state)), (left, top))
    write_facts(pen, (left, top + COLUMN + MARGIN), lines)
    return np.asarray(canvas)


def frame_side_by_side(
    title: str, players: Sequence[str], moments: Sequence[Moment], window: Window
) -> Picture:
    """Draw a window of each player's grid above the facts of the moment."""
    grids = [_grid(moment, window) for moment in moments]
    height, width, _ = grids[0].shape
    column = max(width, COLUMN, *(round(font().getlength(player)) for player in players))
    canvas, pen = titled_canvas(
        title,
        len(grids) * (column + MARGIN) + MARGIN,
        2 * LINE + height + LINE * len(SHORT_FACTS) + 2 * MARGIN,
    )
    top = MARGIN + 2 * LINE
    for number, (player, moment, grid) in enumerate(zip(players, moments, grids, strict=True)):
        left = MARGIN + number * (column + MARGIN)
        pen.text((left, MARGIN // 2 + LINE), player, PALE_INK, font())
        canvas.paste(Image.fromarray(grid), (left, top))
        lines = [(label, value) for label, value in facts(moment) if label in SHORT_FACTS]
        write_facts(pen, (left, top + height + MARGIN // 2), lines)
    return np.asarray(canvas)


def _grid(moment: Moment, window: Window) -> Picture:
    largest = max(part.stop - part.start for part in window)
    tile_size = min(SPRITE_SIZE, LARGEST_GRID // largest)
    rows, columns = (slice(part.start * tile_size, part.stop * tile_size) for part in window)
    beyond = (0, rows.stop), (0, columns.stop), (0, 0)  # another episode's map may be larger
    return np.pad(whole_grid(moment.state, tile_size), beyond)[rows, columns]


def titled_canvas(title: str, width: int, height: int) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    """Return a picture of at least this size with a whole title, and a pen to draw on it."""
    width = max(width, round(font().getlength(title)) + 2 * MARGIN)
    size = -(-width // BLOCK) * BLOCK, -(-height // BLOCK) * BLOCK
    canvas = Image.new("RGB", size, PAPER)
    pen = ImageDraw.Draw(canvas)
    pen.text((MARGIN, MARGIN // 2), title, INK, font())
    return canvas, pen


def write_facts(
    pen: ImageDraw.ImageDraw, corner: tuple[int, int], lines: Iterable[tuple[str, str]]
) -> None:
    """Write labels and values line by line, from the upper left corner."""
    left, top = corner
    for row, (label, value) in enumerate(lines):
        y = top + row * LINE
        pen.text((left, y), label, PALE_INK, font())
        pen.text((left + LABEL_WIDTH, y), value, EVENT_INK if label == "event" else INK, font())


@cache
def font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return the font of all text in frames."""
    return ImageFont.load_default(TEXT_SIZE)


def write(
    path: Path, frames: Iterator[Picture], fps: int, *, numbered: bool = False
) -> tuple[Path, int]:
    """Write frames of one size to a new file, atomically.

    Args:
        path: the file; its suffix is one of `WRITERS`. A PNG gets the first frame only.
        frames: at least one.
        fps: frames a second.
        numbered: whether to number the stem if the path is taken.

    Returns:
        The file, and the number of frames.
    """
    count = 0

    def counted() -> Iterator[Picture]:
        nonlocal count
        for picture in frames:
            count += 1
            yield picture

    path.parent.mkdir(parents=True, exist_ok=True)
    with temporary_file(path) as temporary:
        WRITERS[path.suffix.lower()](temporary, counted(), fps)
        if numbered:
            path = write_new(path, partial(give_name, temporary))
        else:
            give_name(temporary, path)
    return path, count


# Both writers hold one frame at a time; imageio.v3 writes the same bytes, but from all frames.
def _write_gif(path: Path, frames: Iterator[Picture], fps: int) -> None:
    images = _in_256_colors(frames)
    next(images).save(path, save_all=True, append_images=images, duration=1000 // fps, loop=0)


def _in_256_colors(frames: Iterator[Picture]) -> Iterator[Image.Image]:
    """Yield frames with the palette of the frame before while it fits: choosing one is slow."""
    chosen = None
    for picture in frames:
        image = Image.fromarray(picture)
        if chosen is not None:
            reduced = image.quantize(palette=chosen, dither=Image.Dither.NONE)
            if _are_alike(image, reduced):
                yield reduced
                continue
        chosen = image.quantize(dither=Image.Dither.NONE)
        yield chosen


def _are_alike(image: Image.Image, reduced: Image.Image) -> bool:
    """Return whether the colours differ little, at every pixel and on average."""
    difference = ImageStat.Stat(ImageChops.difference(image, reduced.convert("RGB")))
    furthest = max(high for _, high in difference.extrema)
    return furthest <= FURTHEST_COLOR and max(difference.mean) <= FURTHEST_MEAN


def check_ffmpeg() -> None:
    """Refuse to write an MP4 without the extra `video`."""
    if find_spec("imageio_ffmpeg") is None:
        raise SettingsError(
            "an .mp4 needs ffmpeg: `uv sync --extra video`, or `pip install 'cbet-jax[video]'`; a "
            ".gif needs nothing more"
        )


def _write_mp4(path: Path, frames: Iterator[Picture], fps: int) -> None:
    import imageio_ffmpeg  # imported here: it is an extra

    first = next(frames)
    height, width, _ = first.shape
    writer = imageio_ffmpeg.write_frames(
        path,
        (width, height),
        fps=fps,
        quality=None,
        macro_block_size=BLOCK,
        output_params=["-crf", str(CRF)],
    )
    writer.send(None)  # starts ffmpeg
    sent = written = 0
    with contextlib.closing(writer), contextlib.suppress(OSError):
        for picture in chain([first], frames):
            writer.send(np.ascontiguousarray(picture))
            sent += 1
        writer.close()
        with contextlib.suppress(RuntimeError):  # there is nothing to count
            written, _ = imageio_ffmpeg.count_frames_and_secs(path)
    if written < max(sent, 1):  # ffmpeg does not say why
        raise OSError(errno.EIO, f"ffmpeg has written {written} of {sent} frames")


def _write_png(path: Path, frames: Iterator[Picture], fps: int) -> None:
    Image.fromarray(next(frames)).save(path)


WRITERS: dict[str, Callable[[Path, Iterator[Picture], int], None]] = {
    ".gif": _write_gif,
    ".mp4": _write_mp4,
    ".png": _write_png,
}
