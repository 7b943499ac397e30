"""What a policy visits, and the rewards of that, by hand in a tiny world."""

import math

import jax
import pytest

from cbet_jax.agent import AgentParams, uniform
from envs.minigrid import rules
from envs.minigrid.level_text import from_text
from experiments.illustrations import visits
from experiments.illustrations.visits import Probe

CELL = "WGWGWGWG\nWG>>KYWG\nWGWGWGWG"  # one free cell, and a yellow key beside it
ROOM = "WGWGWGWGWG\nWGKY    WG\nWG  <<  WG\nWG  KR  LY\nWGWGWGWGWG"
RIGHT, DOWN = 0, 1


def always(action: int):
    """Return the agent that does the same all the time."""
    agent = uniform(len(rules.ACTIONS))

    def apply(params, view, first, state):
        outputs = agent.apply(params, view, first, state)
        return outputs._replace(logits=outputs.logits.at[..., action].set(1e3))

    return agent._replace(apply=apply)


def counted(text: str, action: int, steps: int, max_steps: int = 100, worlds: int = 1):
    level = from_text(text, max_steps=max_steps)
    world = visits.one_level(level, worlds)
    seen = visits.count_visits(world, always(action), AgentParams(()), steps, jax.random.key(0))
    return level, seen


def test_counts_norms_and_rewards_by_hand():
    """Five turns to the right: the agent faces 0 1 2 3 0 1."""
    level, seen = counted(CELL, rules.RIGHT, 5)
    assert sorted(seen.states.values()) == [1, 1, 2, 2]
    assert sorted(seen.changes.values()) == [1, 4]  # from 3 to 0, and one further
    probes = visits.probe(seen, level, RIGHT, ("left", "right", "forward", "pickup"))
    assert probes == [
        Probe(1, 1, "left", states=2, changes=1, squared_norm=9),  # from 0 to 3: never yet
        Probe(1, 1, "right", states=3, changes=5, squared_norm=1),
        Probe(1, 1, "forward", states=3, changes=1, squared_norm=0),  # the key is in the way
        Probe(1, 1, "pickup", states=1, changes=1, squared_norm=(5 - 1) ** 2 + 4**2),
    ]
    found = visits.rewards(probes)
    halves, thirds = 1 / math.sqrt(2), 1 / math.sqrt(3)
    assert {name: pytest.approx(list(values)) for name, values in found.items()} == {
        "count": [halves, thirds, thirds, 1],
        "change_norm": [9 * halves, thirds, 0, 32],
        "cbet": [1 / 3, 1 / 8, 1 / 4, 1 / 2],
    }


def test_worlds_are_counted_together_and_across_the_ends_of_episodes():
    """Two worlds face 0 1 2, then their episodes end: 0 1 2 0 1."""
    _, seen = counted(CELL, rules.RIGHT, 4, max_steps=3, worlds=2)
    assert sorted(seen.states.values()) == [2, 4, 4]
    assert sorted(seen.changes.values()) == [2, 6]


def test_an_agent_that_moves_changes_two_cells():
    level = from_text(ROOM)
    nothing = visits.Visits(visits.Counter(), visits.Counter())
    by_cell = {
        (probe.x, probe.y, probe.action): probe.squared_norm
        for probe in visits.probe(nothing, level, DOWN, ("forward", "pickup", "left"))
    }
    free = {(2, 1), (3, 1), (1, 2), (2, 2), (3, 2), (1, 3), (3, 3)}
    assert {cell[:2] for cell in by_cell} == free
    moved = 2 * ((10 - 1) ** 2 + DOWN**2)  # of types, and of directions
    assert by_cell[2, 1, "forward"] == moved
    assert by_cell[2, 2, "forward"] == 0
    assert by_cell[2, 2, "pickup"] == (5 - 1) ** 2  # a red key: red is no colour at all
    assert by_cell[1, 2, "pickup"] == 0  # the yellow key is behind it
    assert by_cell[3, 3, "left"] == 1
