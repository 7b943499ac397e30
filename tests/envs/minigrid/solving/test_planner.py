"""Every environment's levels can be solved, and the planner that shows it makes no mistakes."""

import jax
import numpy as np
import pytest
from scipy.stats import binomtest

from envs.minigrid import cells as c
from envs.minigrid import rules
from envs.minigrid.generators import GENERATORS
from envs.minigrid.level import PICK_UP, Level
from envs.minigrid.level_text import from_text
from tests.envs.minigrid.solving.planner import plan
from tests.support.families import ONE_PER_FAMILY, others_slow
from tests.support.handmade_levels import stacked
from tests.support.play import CANVAS, exports_of, levels_of, start_all

LONGEST = 400  # actions of a plan
WORLDS = 100  # played at once, by one program for levels of all sizes

# In MiniGrid's first layouts, the ball in front of a side room's second door may replace the box
# with the first door's key. That box is in any of 15 cells with equal probability, so 1 level in
# 15 is lost if the first door is the only way, as to one of the two corners of 2Q. The second door
# of a side room, whose key is safe, leads to all other corners, and so to all corners in Full.
UNSOLVABLE_SHARE = {
    "ObstructedMaze-2Dlhb": 1 / 15,
    "ObstructedMaze-1Q": 1 / 15,
    "ObstructedMaze-2Q": 1 / 30,
}

SOLVABLE = {
    "the key has to be put down in the corridor": """\
WGWGWGWGWGWG
WG>>KRLRABWG
WGWGWGWGWGWG""",
    "one of two pockets holds the key, and two balls are before the door": """\
WGWGWGWGWGWGWGWG
WGWGKRWG  WGWGWG
WG  >>APAYLRABWG
WGWGWGWGWGWGWGWG""",
    "nothing can be dropped on floors and in doors": """\
WGWGWGWGWGWGWGWG
WG  FBDB>>APLRAB
WG  WGWGFBWGWGWG
WGWGWGWGKRWGWGWG
WGWGWGWGWGWGWGWG""",
    "the key to the key is behind a ball, beside lava": """\
WGWGWGWGWGWGWG
WGBYLPKRWGABWG
WGVRAPWGWGLRWG
WGKP  >>    WG
WGWGWGWGWGWGWG
(1, 1) holds KY""",
}
HOPELESS = {
    "the key is behind its own door": """\
WGWGWGWGWGWG
WG>>LRKRABWG
WGWGWGWGWGWG""",
    "lava is in the way": """\
WGWGWGWGWGWG
WG>>VRKRABWG
WGWGWGWGWGWG""",
    "the ball cannot be put anywhere but between key and door": """\
WGWGWGWGWGWGWG
WGKR>>AP  LRAB
WGWGWGWGWGWGWG""",
}


@pytest.mark.parametrize("drawing", [*SOLVABLE.values(), *HOPELESS.values()])
def test_a_drawn_level_is_solved_or_proven_unsolvable(drawing):
    level = from_text(drawing, task=PICK_UP, target=c.ball(c.BLUE))
    solvable = plan_all(start_all(on_canvas(stacked([level]))))
    assert solvable.tolist() == [drawing in SOLVABLE.values()]


@pytest.mark.parametrize("name", others_slow(ONE_PER_FAMILY, ("Unlock", "BlockedUnlockPickup")))
def test_forty_levels_are_solved_or_proven_unsolvable(name):
    check_generator(name, 40)


@pytest.mark.parametrize("name", others_slow(GENERATORS, ()))
def test_two_thousand_levels_are_solved_or_proven_unsolvable(name):
    check_generator(name, 2000)


def check_generator(name: str, count: int) -> None:
    """Plan for levels, play the plans in time, and check the share of levels without a plan."""
    levels = levels_of(name, jax.random.key(11), count)
    unsolvable = count - int(plan_all(start_all(levels)).sum())
    share = UNSOLVABLE_SHARE.get(name, 0)
    assert binomtest(unsolvable, count, share).pvalue > 1e-4


def plan_all(states: rules.State) -> np.ndarray:
    """Return which worlds have a plan, and play each plan: only its last action succeeds."""
    plans = [plan(world) for world in exports_of(states)]
    solvable = np.array([each is not None for each in plans])
    lengths = np.array([len(each or []) for each in plans])
    assert (lengths < states.level.max_steps).all()
    success, died = replayed(states, plans)
    assert (success.any(0) == solvable).all()
    assert (np.argmax(success, axis=0) == np.maximum(lengths - 1, 0)).all()
    assert not died.any()
    return solvable


def replayed(states: rules.State, plans) -> tuple[np.ndarray, np.ndarray]:
    """Play a plan in each world (`[B]`), then do nothing; where there is no plan, do nothing.

    Returns:
        Whether each action succeeded, and whether the agent died: bool `[LONGEST, B]`.
    """
    count = len(plans)
    actions = np.full((LONGEST, count), rules.DONE, np.int32)
    for world, each in enumerate(plans):
        actions[: len(each or []), world] = each or []
    states = jax.device_get(states)
    states = states._replace(level=on_canvas(states.level))
    parts = []
    for first in range(0, count, WORLDS):
        chosen = np.minimum(np.arange(first, first + WORLDS), count - 1)  # the last one again
        some = jax.tree.map(lambda leaf, chosen=chosen: leaf[chosen], states)
        parts.append(jax.device_get(replay(some, actions[:, chosen])))
    success, died = (np.concatenate(part, axis=1)[:, :count] for part in zip(*parts, strict=True))
    return success, died


def on_canvas(levels: Level) -> Level:
    """Pad levels (`[B]`) with wall to the size that holds every level."""
    cells = np.asarray(levels.cells)
    added = [(0, 0), *((0, CANVAS - size) for size in cells.shape[1:])]
    return levels._replace(cells=np.pad(cells, added, constant_values=c.WALL))


@jax.jit
def replay(states, actions):
    outcomes = jax.lax.scan(jax.vmap(rules.step), states, actions)[1]
    return outcomes.success, outcomes.died
