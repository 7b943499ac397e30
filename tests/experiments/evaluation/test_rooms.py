"""Runs in rooms whose policies are evaluated together."""

from dataclasses import replace

import pytest

from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.runs.directory import RunDirectory
from envs.habitat.apartments import NAMES
from experiments import habitat_evaluate
from experiments.common.presets import HABITAT_PRESETS
from experiments.evaluation.rooms import open_runs
from experiments.habitat_evaluate import HabitatEvaluateOptions

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
