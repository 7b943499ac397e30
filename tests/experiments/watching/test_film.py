"""The pictures of an episode, and the files they go to."""

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from envs.minigrid.render import SPRITE_SIZE, agents_view, whole_grid
from experiments.watching import film
from tests.support.watched import TITLE, read_gif


def shows(picture: np.ndarray, part: np.ndarray) -> int:
    """How many times a part is in a picture."""
    windows = np.lib.stride_tricks.sliding_window_view(picture, part.shape)[:, :, 0]
    corners = np.argwhere((windows[:, :, 0, 0] == part[0, 0]).all(-1))
    return sum(np.array_equal(windows[y, x], part) for y, x in corners)


def test_a_frame_shows_the_grid_and_the_view(moments, frames):
    for moment, frame in zip(moments, frames, strict=False):
        assert shows(frame, whole_grid(moment.state)) == 1
        assert shows(frame, agents_view(moment.state)) == 1


def test_a_title_is_shown_whole(moments):
    """A longer one makes the picture wider, and nothing is cut off at its edge."""
    width = film.font().getlength("title ") * 40
    (wide,) = film.film("title " * 40, ["somebody"], [(moments[0],)])
    assert width + 2 * film.MARGIN < wide.shape[1] < width + 200
    assert (wide[: film.LINE, -film.MARGIN :] == film.PAPER).all()


def test_two_players_are_shown_side_by_side(moments):
    scene = (moments[0], moments[1])
    players = ("somebody", "somebody else with a name that is wider than the grid")
    (frame,) = film.film(TITLE, players, [scene])
    for moment in scene:
        assert shows(frame, whole_grid(moment.state)) == 1
    height, width, _ = frame.shape
    assert width % film.BLOCK == height % film.BLOCK == 0
    assert width > 2 * 5 * SPRITE_SIZE


def test_every_frame_of_a_film_has_one_size(moments):
    """The second level is the same in the middle of a larger, empty grid."""
    first = moments[0]
    level = first.state.level
    cells = np.zeros_like(level.cells, shape=np.array(level.cells.shape) + 9)
    cells[8:11, 10:15] = level.cells[5:-5, 5:-5]
    moved = level.agent_position + np.array([5, 3])
    level = level._replace(cells=cells, size=level.size + 9, agent_position=moved)
    second = first._replace(episode=2, state=first.state._replace(level=level))
    pictures = list(film.film(TITLE, ["somebody"], [(first,), (second,)]))
    assert pictures[0].shape == pictures[1].shape
    assert shows(pictures[1], whole_grid(first.state)) == 1


def test_maps_of_other_sizes_are_shown_whole(moments):
    """The second one is six of the first, side by side."""
    first = moments[0]
    cells = np.tile(first.state.level.cells[5:-5, 5:-5], (3, 2))
    size = np.array(cells.shape[::-1])
    level = first.state.level._replace(cells=np.pad(cells, 5), size=size)
    second = first._replace(episode=2, state=first.state._replace(level=level))
    pictures = list(film.film(TITLE, ["somebody"], [(first,), (second,)]))
    assert pictures[0].shape == pictures[1].shape
    for picture, moment in zip(pictures, (first, second), strict=True):
        assert shows(picture, whole_grid(moment.state)) == 1


def read_mp4(path) -> list[np.ndarray]:
    reader = imageio_ffmpeg.read_frames(str(path))
    width, height = next(reader)["size"]
    return [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]


@pytest.mark.parametrize(("suffix", "read"), [(".gif", read_gif), (".mp4", read_mp4)])
def test_a_film_shows_every_frame(suffix, read, frames, tmp_path):
    path = tmp_path / "new" / f"film{suffix}"
    assert film.write(path, iter(frames), 5) == (path, len(frames))
    shown = read(path)
    assert len(shown) == len(frames)
    for picture, frame in zip(shown, frames, strict=True):
        assert picture.shape == frame.shape
        assert np.abs(picture.astype(int) - frame).mean() < 2
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_what_ends_the_play_is_not_taken_for_the_films_fault(suffix, frames, tmp_path):
    def play():
        yield frames[0]
        raise RuntimeError("the simulator has died")

    with pytest.raises(RuntimeError, match="the simulator has died"):
        film.write(tmp_path / f"film{suffix}", play(), 5)
    assert not list(tmp_path.iterdir())


def test_a_gif_has_new_colours_where_its_first_frame_lacks_them(tmp_path):
    path, frames = tmp_path / "film.gif", np.zeros((3, 32, 48, 3), np.uint8)
    frames[1:, 3, 4] = (250, 200, 60)
    frames[2, 10:20] = (0, 100, 200)
    film.write(path, iter(frames), 5)
    for picture, frame in zip(read_gif(path), frames, strict=True):
        assert np.abs(picture.astype(int) - frame).max() <= 8
    with Image.open(path) as gif:
        assert gif.info["duration"] == 1000 / 5  # milliseconds of a frame


def test_a_gif_does_not_show_purple_as_grey(tmp_path):
    """A small purple thing comes into a film that has all shades of grey."""
    path, frames = tmp_path / "film.gif", np.zeros((2, 64, 64, 3), np.uint8)
    frames[:, 0] = np.arange(0, 256, 4)[:, None]
    frames[1, 30:33, 30:33] = (154, 103, 212)  # in sight of the agent
    film.write(path, iter(frames), 5)
    assert np.abs(read_gif(path)[1][31, 31].astype(int) - frames[1, 31, 31]).max() <= 8


def test_a_png_shows_the_first_frame(frames, tmp_path):
    path = tmp_path / "level.PNG"
    assert film.write(path, iter(frames), 5) == (path, 1)
    with Image.open(path) as picture:
        assert np.array_equal(np.asarray(picture), frames[0])


def test_no_file_is_written_over(frames, tmp_path):
    path = tmp_path / "film.gif"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        film.write(path, iter(frames), 5)
    assert path.read_text() == "mine"
    with pytest.raises(OSError, match="exists"):
        film.write(path / "film.gif", iter(frames), 5)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    saved, _ = film.write(path, iter(frames), 5, numbered=True)  # as of two commands at once
    assert saved == tmp_path / "film-2.gif"
    assert path.read_text() == "mine"
