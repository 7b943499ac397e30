"""Runs in rooms whose policies are evaluated together."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from cbet_jax.agent import AgentParams
from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.runs.directory import RunDirectory
from envs.habitat.apartments import NAMES
from experiments import habitat_evaluate
from experiments.common.presets import HABITAT_PRESETS
from experiments.evaluation import rooms
from experiments.evaluation.rooms import open_runs
from experiments.habitat_evaluate import HabitatEvaluateOptions, plan_of

SMOKE = HABITAT_PRESETS["smoke"]


def written(path, settings: RunSettings):
    RunDirectory(path).create(settings)
    return path


def test_runs_that_play_scenes_in_other_ways_are_evaluated_apart(tmp_path):
    first = written(tmp_path / "first", SMOKE)
    longer = replace(SMOKE.habitat, max_steps=7, random_starts=True)  # an evaluation decides these
    second = written(tmp_path / "second", replace(SMOKE, habitat=longer))
    wider = replace(SMOKE.habitat, agent_radius=0.2)
    third = written(tmp_path / "third", replace(SMOKE, habitat=wider))
    assert len(open_runs([first, second])) == 2
    with pytest.raises(SettingsError, match=r"third plays scenes in another way .*agent_radius"):
        open_runs([first, third])


def test_names_of_random_play_are_refused(tmp_path):
    longer = replace(SMOKE, train=replace(SMOKE.train, frames=2_000))
    runs = [written(tmp_path / "uniform", SMOKE), written(tmp_path / "b", longer)]
    with pytest.raises(SettingsError, match="random play 'uniform'"):
        open_runs(runs)


def test_a_runs_way_up_is_not_that_of_apartments_and_scenes_are_named_where_none_is_left(tmp_path):
    """A run's `up` belongs to its own file; by default other apartments are played."""
    settings = replace(SMOKE, environments=NAMES, habitat=replace(SMOKE.habitat, up="y"))
    path = written(tmp_path / "run", settings)
    runs, options = open_runs([path]), HabitatEvaluateOptions((path,))
    plan = habitat_evaluate.plan_of(options, runs)
    assert plan.habitat.up is None
    with pytest.raises(SettingsError, match="name the scenes for raycast"):
        habitat_evaluate.chosen_scenes(options, runs, plan.habitat)
    own = replace(options, scenes=("own.glb",))
    assert habitat_evaluate.plan_of(own, runs).habitat.up == "y"


def test_each_policy_walks_under_its_own_name_and_seed_from_the_same_starts(monkeypatch):
    numbers = lambda *of_seeds: AgentParams({"x": np.array(of_seeds)})  # noqa: E731
    monkeypatch.setattr(rooms, "untrained", lambda *given: numbers(-1, -2))
    monkeypatch.setattr(rooms.walks, "make_walker", lambda world, agent, steps: None)
    played = lambda walker, params, key, *given, **options: (params, key)  # noqa: E731
    monkeypatch.setattr(rooms.walks, "play", played)
    settings = replace(SMOKE, seeds=2, first_seed=5)
    run = rooms.EvaluatedRun("cbet", None, settings, settings.habitat)
    plan = rooms.WalkPlan(settings.habitat, 3, 4, 1, 9, None, None)
    policies = [SimpleNamespace(agent=None, params=numbers(1, 2))]
    players = rooms._players([run], policies, plan, SimpleNamespace(num_actions=3))
    walks = {player.name: rooms._walk(player, plan) for player in players}
    found = {
        name: {seed: params.learnt["x"].tolist() for seed, (params, _) in of_seeds.items()}
        for name, of_seeds in walks.items()
        if name != "uniform"
    }
    assert found == {"cbet": {5: 1, 6: 2}, "untrained": {5: -1, 6: -2}}
    keys = [key for of_seeds in walks.values() for _, key in of_seeds.values()]
    assert len(keys) == 5
    assert all(key == jax.random.key(9) for key in keys)


def test_an_evaluations_own_words_decide_how_scenes_are_walked(tmp_path):
    RunDirectory(tmp_path).create(SMOKE)
    runs = rooms.open_runs([tmp_path])
    asked = {"episodes": 3, "steps": 4, "seed": 9, "workers": 5, "checkpoint": 80}
    for random_starts in (False, True):
        options = HabitatEvaluateOptions((tmp_path,), **asked, random_starts=random_starts)
        plan = plan_of(options, runs)
        assert {name: getattr(plan, name) for name in asked} == asked
        played = plan.habitat
        assert (played.random_starts, played.shared_start) == (random_starts, True)
        assert played.max_steps > plan.steps
