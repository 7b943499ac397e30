"""Levels as text."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.minigrid import cells as c
from envs.minigrid import rules
from envs.minigrid.export import export
from envs.minigrid.generators import GENERATORS
from envs.minigrid.level import PICK_UP
from envs.minigrid.level_text import from_text, read_grid, to_text
from envs.minigrid.rules import FORWARD, PICKUP, TOGGLE, start
from tests.support.families import others_slow
from tests.support.handmade_levels import random_levels
from tests.support.minigrid_reference import make, rebuild
from tests.support.play import levels_of

BOX_HIDES_KEY = """\
WGWGWGWGWGWG
WG>>BY  LRWG
WGWGWGWGWGWG
(2, 1) holds KR"""


def test_a_drawn_level_plays_as_drawn():
    step = jax.jit(rules.step)
    state = start(from_text(BOX_HIDES_KEY, task=PICK_UP, target=c.key(c.RED)))
    for action in (TOGGLE, PICKUP):
        state, outcome = step(state, jnp.int32(action))
    assert outcome.success
    for action in (FORWARD, FORWARD, TOGGLE, FORWARD):
        state, _ = step(state, jnp.int32(action))
    assert to_text(state.level).splitlines()[1:] == [
        "WG      >>WG",
        "WGWGWGWGWGWG",
        "(4, 1) under _R",
    ]


@pytest.mark.parametrize("task", ["reach the goal", "open the door"])
def test_every_level_survives_being_written_and_read(task):
    levels = jax.device_get(random_levels(np.random.default_rng(3), task, 5))
    for index in range(5):
        level = jax.tree.map(lambda leaf, index=index: leaf[index], levels)
        again = from_text(to_text(level), task=int(level.task), target=int(level.target))
        assert jax.tree.all(jax.tree.map(lambda a, b: (np.asarray(a) == b).all(), level, again))


def test_the_text_of_a_real_level_is_minigrids_own():
    levels = levels_of("KeyCorridorS3R3", jax.random.key(0), 1)
    level = jax.tree.map(lambda leaf: leaf[0], levels)
    env = make("KeyCorridorS3R3")
    rebuild(export(start(level)), env)
    theirs = env.pprint_grid()
    in_their_colours = to_text(level).replace("E", "G")
    assert in_their_colours.removesuffix("\nG is green") == theirs


@pytest.mark.parametrize(
    "name", others_slow(GENERATORS, ("KeyCorridorS3R3", "BlockedUnlockPickup", "DoorKey-5x5"))
)
def test_minigrids_own_text_is_read_right_or_refused(name):
    """It writes green and grey alike, so levels with a thing of these colours are refused."""
    env = make(name)
    for seed in range(20):
        env.reset(seed=seed)
        grid = env.grid.encode()
        kinds, colors, _ = np.moveaxis(grid, -1, 0)
        things = np.isin(kinds, (c.TYPE_DOOR, c.TYPE_KEY, c.TYPE_BALL, c.TYPE_BOX))
        if (things & np.isin(colors, (c.GREEN, c.GREY))).any():
            with pytest.raises(ValueError, match="green or grey in MiniGrid's pprint_grid"):
                from_text(env.pprint_grid())
        else:
            level = from_text(env.pprint_grid())
            np.testing.assert_array_equal(export(start(level)).grid, grid)


@pytest.mark.parametrize(
    ("cells", "note", "key"),
    [
        ("KG", "", None),
        ("KG", "G is green", c.key(c.GREEN)),
        ("KGBE", "", c.key(c.GREEN)),
        ("KEBG", "", c.key(c.GREY)),
        ("KR", "G is green", c.key(c.RED)),
        ("KGBR", "(3, 0) holds KE", None),
    ],
)
def test_a_text_says_what_its_g_means(cells, note, key):
    text = f"WG>>{cells}\n{note}"
    if key is None:
        with pytest.raises(ValueError, match=r"^KG is green here, .* add the line 'G is green'$"):
            from_text(text)
    else:
        assert read_grid(text)[0][0, 2] == key


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("WGWG\nWG", r"even length, not \[4, 2\]"),
        ("WGW", r"same even length, not \[3\]"),
        ("WG>>WG\nwithin -3 steps", "^'within -3 steps' is neither a row of cells nor a statement"),
        ("WGXX>>", "'XX'"),
        ("WGWG", "one agent, not 0"),
        (">>VV", "one agent, not 2"),
    ],
)
def test_a_malformed_drawing_is_refused(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        from_text(text)
