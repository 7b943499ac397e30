"""The planner: its plans work, its proofs are sound, and it gives up on no environment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binomtest

from envs.minigrid import cells as c
from envs.minigrid import rules
from envs.minigrid.export import export
from envs.minigrid.generators import GENERATORS
from envs.minigrid.level import (
    OPEN_DOOR,
    PICK_UP,
    REACH_GOAL,
    TASKS,
    make_level,
    pack_position,
)
from envs.minigrid.level_text import from_text
from tests.envs.minigrid.solving import planner, solver
from tests.support.handmade_levels import random_levels, stacked
from tests.support.play import exports, exports_of, levels_of, start_all
from tests.support.replay import LONGEST, on_canvas, replay

# In MiniGrid's first layouts, the ball in front of a side room's second door may replace the box
# with the first door's key. That box is in any of 15 cells with equal probability, so 1 level in
# 15 is lost if the first door is the only way, as to one of the two corners of 2Q. The second door
# of a side room, whose key is safe, leads to all other corners, and so to all corners in Full.
UNSOLVABLE_SHARE = {
    "ObstructedMaze-2Dlhb": 1 / 15,
    "ObstructedMaze-1Q": 1 / 15,
    "ObstructedMaze-2Q": 1 / 30,
}

TIGHT = {
    "the key has to be put down in the corridor": """\
WGWGWGWGWGWG
WG>>KRLRABWG
WGWGWGWGWGWG""",
    "the only place for the ball before the door is a pocket": """\
WGWGWGWGWGWG
WGWG  WGWGWG
WGKR>>AGLRAB
WGWGWGWGWGWG""",
    "one of two pockets holds the key, and two balls are before the door": """\
WGWGWGWGWGWGWGWG
WGWGKRWG  WGWGWG
WG  >>AGAYLRABWG
WGWGWGWGWGWGWGWG""",
    "the first ball must not be put where the second has to go by": """\
WGWGWGWGWGWGWGWGWG
WGKR  >>AGAYLRABWG
WGWG  WGWGWGWGWGWG
WGWG  WGWGWGWGWGWG
WGWGWGWGWGWGWGWGWG""",
    "nothing can be dropped on floors and in doors": """\
WGWGWGWGWGWGWGWG
WG  FBDB>>AGLRAB
WG  WGWGFBWGWGWG
WGWGWGWGKRWGWGWG
WGWGWGWGWGWGWGWG""",
    "the key to the key is behind a ball, beside lava": """\
WGWGWGWGWGWGWG
WGBYLGKRWGABWG
WGVRAGWGWGLRWG
WGKG  >>    WG
WGWGWGWGWGWGWG
(1, 1) holds KY""",
    "empty boxes have to be unpacked, for there is no room to put them": """\
WGWGWGWGWGWG
WGABLGLRBGWG
WGWGBGWGWGWG
WGBRBR^^LRWG
WGWGWGWGWGWG
(1, 3) holds KG""",
}
HOPELESS = {
    "the key is of another colour": """\
WGWGWGWGWGWG
WG>>KGLRABWG
WGWGWGWGWGWG""",
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
WGKR>>AG  LRAB
WGWGWGWGWGWGWG""",
    "nothing can be dropped on the floor of the pocket": """\
WGWGWGWGWGWG
WGWGFBWGWGWG
WGKR>>AGLRAB
WGWGWGWGWGWG
(2, 2) under FB""",
}


@pytest.mark.parametrize("drawing", TIGHT.values(), ids=TIGHT)
def test_a_tight_level_is_solved(drawing):
    check_solved(find_ball(drawing))


@pytest.mark.parametrize("drawing", HOPELESS.values(), ids=HOPELESS)
def test_a_level_without_a_solution_has_no_plan(drawing):
    level = export(rules.start(find_ball(drawing)))
    assert planner.plan(level) is None
    assert solver.solve(level) is None


def test_a_search_that_is_given_up_proves_nothing(monkeypatch):
    monkeypatch.setattr(planner, "MAX_STATES", 2)
    hopeless = HOPELESS["the ball cannot be put anywhere but between key and door"]
    with pytest.raises(planner.PlanNotFoundError):
        planner.plan(export(rules.start(find_ball(hopeless))))


def test_a_goal_is_entered_even_if_the_agent_stands_on_it():
    drawing = "WGWGWGWG\nWG>>AGWG\nWGWGWGWG\n(1, 1) under GG"
    check_solved(from_text(drawing, task=REACH_GOAL))


@pytest.mark.parametrize("agent", [">>", "VV"])
def test_an_open_door_is_noticed_by_a_toggle(agent):
    drawing = f"WGWGWGWG\nWG{agent}_RWG\nWGWGWGWG"
    check_solved(from_text(drawing, task=OPEN_DOOR, target=pack_position(2, 1)))


@pytest.mark.parametrize(
    ("inside", "corridor", "solvable"),
    [
        (c.key(c.RED), "WG  >>LRABWG\nWGWGWGWGWGWG", True),
        (c.EMPTY, "WG  >>LRABWG\nWGWGWGWGWGWG", False),
        (c.EMPTY, "WG>>  KRLRAB\nWGWGWGWGWGWG\n(1, 1) under FB", True),
        (c.ball(c.BLUE), "WG  >>LRWGWG\nWGWGWGWGWGWG", True),
    ],
)
def test_a_box_in_hand_is_put_down_and_unpacked(inside, corridor, solvable):
    level = find_ball(f"WGWGWGWGWGWG\n{corridor}")
    states = start_alone(level)
    states = states._replace(carrying=jnp.array([c.box(c.GREY, inside)], jnp.uint8))
    assert plan_all(states) == [solvable]


@pytest.mark.parametrize("task", ["reach the goal", "open the door", "pick up the object"])
def test_planner_and_solver_agree_which_cramped_levels_can_be_solved(task, monkeypatch):
    monkeypatch.setattr(solver, "MAX_STATES", 4000)
    levels = cramped_levels(np.random.default_rng(3), task, 60)
    solvable = plan_all(start_all(levels))
    agreed = {True: 0, False: 0}
    for level, has_plan in zip(exports(levels), solvable, strict=True):
        try:
            assert (solver.solve(level) is not None) == has_plan
        except solver.SearchTooLongError:
            continue
        agreed[bool(has_plan)] += 1
    assert min(agreed.values()) >= 5
    assert sum(agreed.values()) >= 45


@pytest.mark.parametrize("task", ["reach the goal", "open the door", "pick up the object"])
def test_cluttered_levels_are_solved(task):
    levels = random_levels(np.random.default_rng(7), task, 20)
    assert plan_all(start_all(levels)).mean() > 0.9


def test_levels_are_solved():
    check_generator("ObstructedMaze-2Dlhb", 100)


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATORS)
def test_two_thousand_levels_are_solved_or_proven_unsolvable(name):
    check_generator(name, 2000)


def find_ball(drawing: str):
    return from_text(drawing, task=PICK_UP, target=c.ball(c.BLUE))


def check_generator(name: str, count: int) -> None:
    """Plan for levels, play the plans in time, and check the share of levels without a plan."""
    levels = levels_of(name, jax.random.key(11), count)
    unsolvable = count - int(plan_all(start_all(levels)).sum())
    share = UNSOLVABLE_SHARE.get(name, 0)
    assert binomtest(unsolvable, count, share).pvalue > 1e-4


def check_solved(level) -> None:
    assert plan_all(start_alone(level)).all()


def start_alone(level) -> rules.State:
    """Return the first state of one level, as a batch of one."""
    return start_all(on_canvas(stacked([level])))


def plan_all(states) -> np.ndarray:
    """Return which worlds have a plan, and play each plan: only its last action succeeds."""
    plans = [planner.plan(world) for world in exports_of(states)]
    solvable = np.array([plan is not None for plan in plans])
    lengths = np.array([len(plan or []) for plan in plans])
    assert (lengths < states.level.max_steps).all()
    success, died = replay(states, plans)
    assert (success.any(0) == solvable).all()
    assert (np.argmax(success, axis=0) == np.maximum(lengths - 1, 0)).all()
    assert not died.any()
    return solvable


def cramped_levels(rng: np.random.Generator, task: str, count: int):
    """Return small levels, stacked, that are so full that many cannot be solved."""
    return stacked([cramped_level(rng, task) for _ in range(count)])


def cramped_level(rng: np.random.Generator, task: str):
    contents = (c.EMPTY, c.key(c.RED), c.key(c.GREEN), c.ball(c.RED))
    makers = (
        (0.30, lambda color: c.EMPTY),
        (0.20, lambda color: c.WALL),
        (0.02, lambda color: c.LAVA),
        (0.14, c.ball),
        (0.14, c.key),
        (0.06, lambda color: c.box(color, contents[rng.integers(4)])),
        (0.08, c.locked_door),
        (0.03, c.closed_door),
        (0.03, lambda color: c.cell(c.KIND_FLOOR, color)),
    )
    chances, make = zip(*makers, strict=True)
    inner = np.array(
        [make[kind](int(rng.integers(2))) for kind in rng.choice(len(make), 12, p=chances)]
    )
    wanted, agent = rng.permutation(12)[:2].tolist()
    target = {"open the door": pack_position(wanted % 4 + 1, wanted // 4 + 1)}.get(
        task, c.ball(c.BLUE)
    )
    door = (c.closed_door, c.locked_door)[rng.integers(2)]
    targets = {"reach the goal": c.GOAL, "open the door": door(c.RED)}
    inner[wanted], inner[agent] = targets.get(task, c.ball(c.BLUE)), c.EMPTY
    grid = np.full((5, 6), c.WALL, np.uint8)
    grid[1:-1, 1:-1] = inner.reshape(3, 4)
    return make_level(
        jnp.asarray(grid),
        jnp.array([agent % 4 + 1, agent // 4 + 1]),
        int(rng.integers(4)),
        task=TASKS.index(task),
        target=target,
        max_steps=LONGEST,
    )
