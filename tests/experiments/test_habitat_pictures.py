"""Pictures of what agents see in scenes."""

import numpy as np
import pytest
from PIL import Image

from envs.habitat.simulator import PANORAMA_SHAPE, VIEW_SHAPE
from experiments import habitat_pictures
from experiments.habitat_pictures import TILE, Seen, colours
from experiments.watching.film import LINE, MARGIN
from tests.support.own_simulator import OWN
from tests.support.refusal import refused

SIMULATOR = ("--simulator", OWN, "--scenes", "fine", "--starts", "3")


def test_a_row_shows_the_view_and_its_panorama(tmp_path) -> None:
    out = tmp_path / "rooms.png"
    habitat_pictures.main([*SIMULATOR, "--seed", "4", "--out", str(out)])
    with Image.open(out) as image:
        pixels = np.asarray(image.convert("RGB"))
    top = MARGIN + LINE
    for column in range(5):  # the view shows the heading, the panorama the position x + 10 z
        left = MARGIN + column * (TILE + MARGIN)
        tile = pixels[top : top + TILE, left : left + TILE]
        assert (tile == (14 if column else 0)).all()


def test_scenes_whose_files_have_one_name_are_rows_of_their_own() -> None:
    seen = Seen(np.zeros(VIEW_SHAPE, np.uint8), np.zeros(PANORAMA_SHAPE, np.uint8))
    one, two = (habitat_pictures.draw([("mesh_semantic", seen)] * rows) for rows in (1, 2))
    assert len(two) - len(one) == TILE + LINE + MARGIN


def test_a_place_where_every_side_shows_something_is_chosen() -> None:
    view, panorama = np.zeros(VIEW_SHAPE, np.uint8), np.zeros(PANORAMA_SHAPE, np.uint8)
    dull = Seen(view, panorama)
    at_a_wall = Seen(view, panorama.copy())
    at_a_wall.panorama[1:] = np.arange(64)[:, None] * 4
    bright = Seen(view, np.broadcast_to(np.arange(64, dtype=np.uint8)[:, None] * 4, PANORAMA_SHAPE))
    assert colours(dull) == colours(at_a_wall) == 2
    assert colours(bright) == 33


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--out", "TAKEN"], "already exists"),
        (["--out", "x.gif"], "out must name a .png"),
        (["--starts", "0"], "starts must be at least 1"),
        (["--simulator", OWN, "--scenes", "bad_scene"], "no scene 'bad_scene'"),
        (["--simulator", OWN, "--scenes", "nowhere"], "found no start position"),
    ],
)
def test_bad_command_lines_are_refused(arguments, expected, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.png").write_bytes(b"")
    arguments = ["taken.png" if word == "TAKEN" else word for word in arguments]
    assert expected in refused(habitat_pictures.main, arguments, capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["taken.png"]
