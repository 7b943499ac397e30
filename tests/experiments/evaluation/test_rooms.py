"""Runs in rooms whose policies are evaluated together."""

from dataclasses import replace

import pytest

from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.runs.directory import RunDirectory
from experiments.common.presets import HABITAT_PRESETS
from experiments.evaluation.rooms import open_runs

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
