"""The part of a grid that a level uses."""

import jax
import pytest

from envs.minigrid.level_text import from_text
from experiments.watching.crop import Window, bounding_box, enlarge

EMPTY = " " * 16
ROOM = [EMPTY, "    WGWGWGWG    ", "    WG>>  WG    ", "    WGWGWGWG    ", EMPTY, EMPTY]


@pytest.fixture(scope="module")
def level():
    return jax.device_get(from_text("\n".join(ROOM)))


def test_a_room_in_an_empty_grid_is_found(level):
    box = bounding_box(level)
    assert box == Window(left=2, top=1, width=4, height=3)
    assert (box.rows, box.columns) == (slice(1, 4), slice(2, 6))


def test_an_agent_outside_is_shown_too(level):
    outside = level._replace(agent_position=level.agent_position * 0 + 5)
    assert bounding_box(outside) == Window(2, 1, 4, 5)


@pytest.mark.parametrize(
    ("size", "corner"), [((4, 3), (2, 1)), ((5, 5), (2, 1)), ((7, 6), (1, 0)), ((8, 6), (0, 0))]
)
def test_a_larger_window_holds_the_room_and_stays_in_the_grid(level, size, corner):
    assert enlarge(bounding_box(level), *size, level) == Window(*corner, *size)
