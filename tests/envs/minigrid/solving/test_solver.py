"""The solver: its solutions are shortest and real, and it solves every sampled level."""

import jax
import numpy as np
import pytest

from envs.minigrid import cells as c
from envs.minigrid import rules
from envs.minigrid.export import export
from envs.minigrid.level import PICK_UP
from envs.minigrid.level_text import from_text
from tests.envs.minigrid.solving import estimate, solver
from tests.support.families import ONE_PER_FAMILY, others_slow
from tests.support.handmade_levels import random_levels
from tests.support.play import exports, levels_of, start_all
from tests.support.replay import replay

# Small enough for shortest solutions. The planner solves the others, too.
SMALL = (
    "MultiRoom-N4-S5",
    "KeyCorridorS3R3",
    "BlockedUnlockPickup",
    "Unlock",
    "UnlockPickup",
    "DoorKey-6x6",
    "DoorKey-8x8",
    "LavaCrossingS9N2",
    "LavaGapS6",
    "LavaGapS7",
)

FACING_KEY = """\
WGWGWGWGWG
WG>>KRLRAB
WGWGWGWGWG"""


def test_a_solution_found_by_hand():
    level = from_text(FACING_KEY, task=PICK_UP, target=c.ball(c.BLUE))
    # Pick up, step, unlock, turn around, drop, turn back, step into the door, pick up.
    assert len(solver.solve(export(rules.start(level)))) == 10


def test_a_level_without_its_key_has_no_solution():
    level = from_text(FACING_KEY.replace("KR", "KG"), task=PICK_UP, target=c.ball(c.BLUE))
    assert solver.solve(export(rules.start(level))) is None


@pytest.mark.parametrize("name", others_slow(SMALL, ["DoorKey-6x6", "KeyCorridorS3R3"]))
def test_the_estimate_never_changes_the_length(name, monkeypatch):
    levels = exports(levels_of(name, jax.random.key(5), 6))
    guided = [len(solver.solve(level)) for level in levels]
    monkeypatch.setattr(estimate.Estimate, "__call__", lambda self, node: 0)
    short = [i for i, length in enumerate(guided) if length <= min(guided) + 3]
    blind = [len(solver.solve(levels[i])) for i in short]
    assert blind == [guided[i] for i in short]


@pytest.mark.parametrize("task", ["reach the goal", "open the door", "pick up the object"])
def test_the_estimate_never_changes_the_length_of_a_cluttered_level(task, monkeypatch):
    levels = exports(random_levels(np.random.default_rng(7), task, 4))
    guided = [solver.solve(level) for level in levels]
    monkeypatch.setattr(estimate.Estimate, "__call__", lambda self, node: 0)
    monkeypatch.setattr(solver, "MAX_STATES", 60_000)
    compared = 0
    for level, plan in zip(levels, guided, strict=True):
        try:
            blind = solver.solve(level)
        except solver.SearchTooLongError:
            continue
        assert (blind is None) == (plan is None)
        assert plan is None or len(blind) == len(plan)
        compared += 1
    assert compared >= 1


@pytest.mark.parametrize("name", [name for name in SMALL if name in ONE_PER_FAMILY])
def test_every_level_is_solvable_and_its_solution_is_real(name):
    check_solutions(name, 100)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_two_thousand_levels_are_solvable(name):
    check_solutions(name, 2000)


def check_solutions(name: str, count: int) -> None:
    """Solve levels, and play every solution: only its last action succeeds."""
    levels = levels_of(name, jax.random.key(11), count)
    plans = [solver.solve(level) for level in exports(levels)]
    assert None not in plans
    lengths = np.array([len(plan) for plan in plans])
    assert lengths.max() < levels.max_steps.min()
    success, _ = replay(start_all(levels), plans)
    assert (np.argmax(success, axis=0) == lengths - 1).all()
    assert success.any(0).all()
