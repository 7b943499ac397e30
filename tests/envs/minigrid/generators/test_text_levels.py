"""Levels drawn as text: what they hold, and what is refused in which words."""

import jax
import numpy as np
import pytest

from envs.minigrid import cells as c
from envs.minigrid.generators import sample_levels
from envs.minigrid.generators.text_levels import text_levels
from envs.minigrid.level import MARGIN, OPEN_DOOR, PICK_UP, REACH_GOAL, pack_position
from envs.minigrid.level_text import to_text

ROOM = """
    WGWGWGWGWG
    WG>>  GGWG
    WGWGWGWGWG
"""
BOX = """
    WGWGWGWGWGWG
    WG>>BYLRKRWG
    WGWGWGWGWGWG
    (2, 1) holds AB
"""


def _first(text):
    generator = text_levels("mine", [text])
    levels, ready = sample_levels(generator, jax.random.key(0), 1)
    assert ready.all()
    return generator, jax.tree.map(lambda leaf: np.asarray(leaf)[0], levels)


def test_a_map_with_a_goal_is_played_for_it():
    generator, level = _first(f"{ROOM}within 7 steps")
    assert str(generator) == "mine: 5x3, reach the goal within 7 steps"
    assert to_text(level) == "WGWGWGWGWG\nWG>>  GGWG\nWGWGWGWGWG"
    assert (level.task, level.max_steps) == (REACH_GOAL, 7)
    assert not generator.deadly
    generator, level = _first(ROOM.replace("  GG", "VRGG"))
    assert generator.deadly
    assert level.max_steps == generator.max_steps == 4 * 5 * 3


@pytest.mark.parametrize(
    ("line", "task", "target"),
    [
        ("pick up AB", PICK_UP, c.ball(c.BLUE)),
        ("pick up KR", PICK_UP, c.key(c.RED)),
        ("pick up BY", PICK_UP, c.box(c.YELLOW, c.ball(c.BLUE))),
        ("open (3, 1)", OPEN_DOOR, pack_position(3, 1)),
        ("no task", 0, 0),
    ],
)
def test_a_line_says_the_task(line, task, target):
    _, level = _first(BOX + line)
    assert (level.task, level.target) == (task, target)


def test_lines_may_stand_above_the_grid():
    _, level = _first("no task\n(2, 1) holds AB" + BOX.replace("(2, 1) holds AB", ""))
    assert to_text(level) == to_text(_first(BOX + "no task")[1])


def test_each_episode_draws_one_of_several_maps_of_any_size():
    wide = ROOM.replace("  GG", "    GG").replace("WGWGWGWGWG", "WGWGWGWGWGWG")
    generator = text_levels("mine", [ROOM, wide])
    levels, _ = sample_levels(generator, jax.random.key(1), 40)
    assert (generator.width, generator.height) == (6, 3)
    assert levels.cells.shape == (40, 3 + 2 * MARGIN, 6 + 2 * MARGIN)
    assert 5 < np.sum(levels.size[:, 0] == 6) < 35


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        ([""], "same even length"),
        ([ROOM.replace("GG", "G ")], r"unknown cell 'G ' at \(3, 1\)"),
        ([ROOM.replace(">>", "  ")], "one agent, not 0"),
        ([ROOM.replace("WG>>", "FB>>")], r"wall WG all around, but not at \(0, 1\)"),
        (["WG>>WG"], "3 to 255 cells along a side, not 3 x 1"),
        ([BOX], "no task: it needs a goal GG, or a line such as"),
        ([f"{ROOM}no task"], "a goal GG, and also a line 'no task'"),
        ([f"{BOX}pick up AB\npick up KR"], "more than one line for its task"),
        ([f"{ROOM}within 5 steps\nwithin 5 steps"], "more than one line for its limit"),
        ([f"{ROOM}within 0 steps"], "must be 1 to 1000000 steps, not 0"),
        ([f"{BOX}pick up KB"], "'pick up KB': it has no such object"),
        ([f"{BOX}open (2, 1)"], "there is no closed or locked door"),
        ([f"{BOX}open (9, 9)"], "there is no closed or locked door"),
        ([f"{BOX}no task".replace("holds AB", "holds GG")], "no box is there that can hold it"),
        ([f"{BOX}no task".replace("(2, 1)", "(99, 1)")], "no box is there"),
        ([f"{BOX}no task\n(4, 1) under FB"], "no agent is there"),
        ([f"{BOX}no task\n(4, 1) on FB"], r"is not '\(x, y\) holds KR'"),
        ([ROOM, "WG"], "map 2: "),
        ([ROOM, f"{BOX}no task"], "different tasks: reach the goal and none"),
        ([f"{ROOM}within 5 steps", ROOM], "different time limits: 5 and None"),
    ],
)
def test_a_bad_map_is_refused_in_one_line(texts, line):
    with pytest.raises(ValueError, match=line) as refused:
        text_levels("mine", texts)
    assert "\n" not in str(refused.value)
