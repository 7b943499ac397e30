"""The maps of rewards: the files, the policy of a run, the faults."""

import csv

import jax
import numpy as np
import pytest
from rich.console import Console

from cbet_jax.analysis import figures
from cbet_jax.config import SettingsError
from cbet_jax.runs.saved_policies import load_policies
from envs.minigrid.level_text import from_text
from experiments import reward_maps
from experiments.illustrations import reward_map, visits
from tests.support.refusal import refused
from tests.support.saved_runs import SEEDS, save_run

CELL = "WGWGWGWG\nWG>>KYWG\nWGWGWGWG"  # one free cell, and a yellow key beside it


@pytest.mark.slow
def test_a_figure_and_a_table_are_written(tmp_path, capsys):
    out = tmp_path / "maps"
    arguments = ["--env", "LavaGapS5", "--worlds", "2", "--steps", "20", "--out", str(out)]
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


def test_no_name_is_taken_for_mathematics(tmp_path):
    probe = visits.Probe(1, 1, "forward", 1, 1, 1)
    drawn = tmp_path / "maps.png", from_text(CELL), [probe], {"cbet": np.ones(1)}
    assert reward_map.draw(*drawn, "of p$x_$").exists()


def test_a_long_caption_is_inside_its_picture(tmp_path, monkeypatch):
    drawn, save = [], figures.save
    keep = lambda path, figure: drawn.append(figure) or save(path, figure)  # noqa: E731
    monkeypatch.setattr(figures, "save", keep)
    probe = visits.Probe(1, 1, "forward", 1, 1, 1)
    said = "counts of 64,000 steps of the policy of runs/a-run-with-a-long-name. " * 3
    reward_map.draw(tmp_path / "maps.png", from_text(CELL), [probe], {"cbet": np.ones(1)}, said)
    extent = drawn[0]._supxlabel.get_window_extent()
    assert 0 <= extent.x0 < extent.x1 <= drawn[0].bbox.width


def test_a_map_shows_each_reward_in_its_cell(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "save", lambda path, figure: drawn.append(figure) or path)
    level = from_text("WGWGWGWG\nWG>>  WG\nWGWGWGWG")
    probes = [visits.Probe(x, 1, act, 1, 1, 1) for act in ("left", "forward") for x in (1, 2)]
    rewards = {"cbet": np.array([0.5, 1.0, 1.5, 2.0])}
    reward_map.draw(tmp_path / "maps.png", level, probes, rewards, "")
    left, forward, _ = drawn[0].axes
    assert [axis.get_title() for axis in (left, forward)] == ["turn left", "move forward"]
    for axis, shares in ((left, [0.25, 0.5]), (forward, [0.75, 1.0])):
        wanted = np.full((3, 4), np.nan)
        wanted[1, 1:3] = shares
        np.testing.assert_array_equal(axis.images[-1].get_array().filled(np.nan), wanted)


def test_the_level_is_that_of_its_own_seed(monkeypatch):
    drawn = []

    def sample(generator, key, count):
        drawn.append((generator.name, *jax.random.key_data(key).tolist()))
        return np.arange(count), np.array([len(drawn) == 1])

    monkeypatch.setattr(reward_map, "sample_levels", sample)
    options = reward_maps.RewardMapOptions(env="Unlock", level_seed=9, seed=3)
    assert reward_map.draw_level(options) == 0
    assert drawn == [("Unlock", 0, 9)]
    with pytest.raises(SettingsError, match="Unlock has no level with level_seed 9"):
        reward_map.draw_level(options)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return save_run(tmp_path_factory.mktemp("run"))


@pytest.mark.slow
def test_a_runs_policy_can_visit_the_level(directory):
    options = reward_maps.RewardMapOptions(source=directory.root, seed_index=SEEDS - 1)
    world = visits.one_level(from_text(CELL), 2)
    agent, params = reward_map.player(options, world, Console())
    seen = visits.count_visits(world, agent, params, 3, jax.random.key(0))
    assert (seen.states.total(), seen.changes.total()) == (8, 6)
    wanted = load_policies(directory, directory.settings(), world).params.learnt
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[SEEDS - 1]), params.learnt, wanted)
