"""The maps of rewards: counts and rewards by hand in a tiny world, the files, the faults."""

import csv
import math

import jax
import numpy as np
import pytest
from rich.console import Console

from cbet_jax.agent import AgentParams, uniform
from cbet_jax.config import SettingsError
from cbet_jax.runs.saved_policies import load_policies
from envs.minigrid import rules
from envs.minigrid.level_text import from_text
from experiments import reward_maps
from experiments.illustrations import visits
from experiments.illustrations.visits import Probe
from tests.support.refusal import refused
from tests.support.tiny import SEEDS, pretrained

CELL = "WGWGWGWG\nWG>>KYWG\nWGWGWGWG"  # one free cell, and a yellow key beside it
ROOM = "WGWGWGWGWG\nWGKY    WG\nWG  <<  WG\nWG  KR  LY\nWGWGWGWGWG"
RIGHT, DOWN = 0, 1


def always(action: int):
    """Returns the agent that does the same all the time."""
    agent = uniform(len(rules.ACTIONS))

    def apply(params, view, first, state):
        logits, value, state = agent.apply(params, view, first, state)
        return logits.at[..., action].set(1e3), value, state

    return agent._replace(apply=apply)


def counted(text: str, action: int, steps: int, max_steps: int = 100, worlds: int = 1):
    level = from_text(text, max_steps=max_steps)
    world = visits.one_level(level, worlds)
    seen = visits.count_visits(world, always(action), AgentParams(()), steps, jax.random.key(0))
    return level, seen


@pytest.fixture(scope="module")
def turned():
    """Five turns to the right: the agent faces 0 1 2 3 0 1."""
    return counted(CELL, rules.RIGHT, 5)


def test_counts_and_norms_by_hand(turned):
    level, seen = turned
    assert sorted(seen.states.values()) == [1, 1, 2, 2]
    assert sorted(seen.changes.values()) == [1, 4]  # from 3 to 0, and one further
    probes = visits.probe(seen, level, RIGHT, ("left", "right", "forward", "pickup"))
    assert probes == [
        Probe(1, 1, "left", states=2, changes=1, squared_norm=9),  # from 0 to 3: never yet
        Probe(1, 1, "right", states=3, changes=5, squared_norm=1),
        Probe(1, 1, "forward", states=3, changes=1, squared_norm=0),  # the key is in the way
        Probe(1, 1, "pickup", states=1, changes=1, squared_norm=(5 - 1) ** 2 + 4**2),
    ]


def test_rewards_by_hand(turned):
    level, seen = turned
    probes = visits.probe(seen, level, RIGHT, ("left", "right", "forward", "pickup"))
    found = visits.rewards(probes)
    halves, thirds = 1 / math.sqrt(2), 1 / math.sqrt(3)
    expected = {
        "count": [halves, thirds, thirds, 1],
        "change_norm": [9 * halves, thirds, 0, 32],
        "cbet": [1 / 3, 1 / 8, 1 / 4, 1 / 2],
    }
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-6)


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
    assert {cell[:2] for cell in by_cell} == {
        (2, 1),
        (3, 1),
        (1, 2),
        (2, 2),
        (3, 2),
        (1, 3),
        (3, 3),
    }
    moved = 2 * ((10 - 1) ** 2 + DOWN**2)  # of types, and of directions
    assert by_cell[2, 1, "forward"] == moved
    assert by_cell[2, 2, "forward"] == 0
    assert by_cell[2, 2, "pickup"] == (5 - 1) ** 2  # a red key: red is no colour at all
    assert by_cell[1, 2, "pickup"] == 0  # the yellow key is behind it
    assert by_cell[3, 3, "left"] == 1


def test_a_figure_and_a_table_are_written(tmp_path, capsys):
    out = tmp_path / "maps"
    arguments = ["--env", "DoorKey-5x5", "--worlds", "2", "--steps", "20", "--out", str(out)]
    reward_maps.main(arguments)
    assert "reward_maps.png" in capsys.readouterr().out
    assert (out / "reward_maps.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader((out / "reward_maps.csv").read_text().splitlines()))
    assert {row["action"] for row in rows} == {"left", "right", "forward", "pickup"}
    for row in rows:
        states, changes = int(row["states"]), int(row["changes"])
        assert float(row["count"]) == pytest.approx(states**-0.5, rel=1e-5)
        assert float(row["cbet"]) == pytest.approx(1 / (states + changes), rel=1e-5)
    assert "already exists" in refused(reward_maps.main, arguments, capsys)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return pretrained(tmp_path_factory.mktemp("run"))


def test_a_runs_policy_can_visit_the_level(directory):
    options = reward_maps.RewardMapOptions(source=directory.root, seed_index=SEEDS - 1)
    world = visits.one_level(from_text(CELL), 2)
    agent, params = reward_maps.player(options, world, Console())
    seen = visits.count_visits(world, agent, params, 3, jax.random.key(0))
    assert (seen.states.total(), seen.changes.total()) == (8, 6)
    wanted = load_policies(directory, directory.settings(), world).params.learnt
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[SEEDS - 1]), params.learnt, wanted)


def test_a_seed_that_the_run_has_not_is_refused(directory):
    options = reward_maps.RewardMapOptions(source=directory.root, seed_index=SEEDS)
    with pytest.raises(SettingsError, match=r"0\.\.1, not 2"):
        reward_maps.player(options, visits.one_level(from_text(CELL), 2), Console())


BAD_COMMAND_LINES = {
    "unknown world": (["--env", "DoorKey-8x9"], "DoorKey-8x9"),
    "unknown action": (["--actions", "pick-up"], "pickup"),
    "no action": (["--actions"], "actions must be"),
    "unknown direction": (["--facing", "south"], "right, down"),
    "no steps": (["--steps", "0"], "steps must be at least 1"),
    "no worlds": (["--worlds", "0"], "worlds must be at least 1"),
    "a checkpoint of nothing": (["--checkpoint", "100"], "--from RUN"),
    "no run": (["--from", "nowhere"], "holds no run"),
}


@pytest.mark.parametrize("name", BAD_COMMAND_LINES)
def test_bad_command_lines_are_refused(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, expected = BAD_COMMAND_LINES[name]
    assert expected in refused(reward_maps.main, arguments, capsys)
    assert not list(tmp_path.iterdir())
