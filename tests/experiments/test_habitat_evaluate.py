"""Evaluating a run in Habitat: where its policies walk, and the table of it."""

import csv
import shutil
from dataclasses import replace

import numpy as np
import pytest

from cbet_jax.networks.published_weights import convert
from cbet_jax.runs.directory import RunDirectory, checkpoints
from cbet_jax.runs.saved_policies import load_policies
from envs.habitat.simulator import ACTIONS, VIEW_SHAPE
from envs.habitat.workers.process import Settings
from envs.habitat.workers.simulators import Simulators
from envs.habitat.world import habitat_world
from experiments import habitat_evaluate, import_torch
from experiments.common import invocation
from experiments.published_code import checkpoint as published_checkpoint
from tests.support.own_simulator import OWN
from tests.support.published import HABITAT, content, drawn
from tests.support.refusal import refused
from tests.support.tiny import numbers

STEPS, EPISODES = 6, 3
PNG = b"\x89PNG"


def test_an_evaluation_leaves_a_table_and_pictures(habitat_run, capsys, tmp_path) -> None:
    run = RunDirectory(shutil.copytree(habitat_run.root, tmp_path / "run"))
    scene = habitat_run.settings().environments[0]
    arguments = [str(run.root), "--episodes", str(EPISODES), "--steps", str(STEPS)]
    habitat_evaluate.main([*arguments, "--scenes", scene])
    shown = capsys.readouterr().out
    with open(run.root / "habitat-evaluation.csv") as file:
        table = list(csv.DictReader(file))
    assert [row["policy"] for row in table] == ["cbet", "untrained", "uniform"]
    for row in table:
        assert (row["scene"], row["episodes"], row["steps"]) == ("walls", "3", "6")
        low, mean, high = (float(row[f"positions{end}"]) for end in ("_low", "", "_high"))
        assert low <= mean <= high
        assert 1 <= mean <= int(row["positions_of_all_episodes"]) <= 3 * STEPS + 1
        assert row["policy"] in shown
    for ending in ("", "-maps", "-coverage"):
        picture = run.root / f"habitat-evaluation{ending}.png"
        assert picture.read_bytes().startswith(PNG)
    before = (run.root / "habitat-evaluation.csv").read_bytes()
    habitat_evaluate.main([*arguments, "--scenes", scene])
    assert (run.root / "habitat-evaluation.csv").read_bytes() == before
    assert (run.root / "habitat-evaluation-2.csv").exists()


@pytest.mark.slow
def test_several_runs_share_one_table(habitat_run, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = (shutil.copytree(habitat_run.root, tmp_path / name) for name in ("a", "b"))
    arguments = ["--episodes", "2", "--steps", str(STEPS)]
    scene = habitat_run.settings().environments
    habitat_evaluate.main([str(first), str(second), *arguments, "--scenes", *scene])
    with open("runs/habitat-evaluation.csv") as file:
        table = list(csv.DictReader(file))
    assert [row["policy"] for row in table] == ["a", "b", "untrained", "uniform"]
    assert table[0]["positions"] == table[1]["positions"]  # both are the same policy
    assert [int(row["checkpoint_frames"]) > 0 for row in table] == [True, True, False, False]
    assert "saved: runs/habitat-evaluation-coverage.png" in capsys.readouterr().out


@pytest.mark.slow
def test_runs_of_other_seeds_are_one_policy(habitat_run, capsys, tmp_path) -> None:
    settings = habitat_run.settings()
    (scene,) = settings.environments
    other = shutil.copytree(habitat_run.root, tmp_path / "other")
    RunDirectory(other).write_settings(replace(settings, first_seed=1))
    runs = [str(other), str(habitat_run.root)]
    arguments = [*runs, "--episodes", "2", "--steps", str(STEPS), "--scenes", scene]
    habitat_evaluate.main([*arguments, "--out", str(tmp_path)])
    with open(tmp_path / "habitat-evaluation.csv") as file:
        table = list(csv.DictReader(file))
    wanted = [(name, seed) for name in ("cbet", "untrained") for seed in ("0", "1", "all")]
    assert [(row["policy"], row["seed"]) for row in table] == [*wanted, ("uniform", "0")]
    shutil.rmtree(checkpoints(RunDirectory(other).checkpoints)[-1])
    assert "another seed of cbet" in refused(habitat_evaluate.main, arguments, capsys)


@pytest.mark.slow
def test_a_policy_of_the_published_code_is_imported_for_rooms(capsys, tmp_path, monkeypatch):
    """It plays what it is converted to."""
    tensors = drawn(HABITAT, len(ACTIONS), VIEW_SHAPE)
    stored = content(tensors, env="HabitatNav-apartment_0")
    monkeypatch.setattr(published_checkpoint, "load", lambda path: stored)
    file, root = tmp_path / "model.tar", tmp_path / "run"
    file.write_bytes(b"what stands in for load() is not read from here")
    import_torch.main([str(file), str(root)])
    line = invocation.command_line(habitat_evaluate.MODULE, root)
    assert f"next: {line}" in capsys.readouterr().out
    run = RunDirectory(root)
    simulators = Simulators(Settings("fine", OWN), 1)
    try:
        policies = load_policies(run, run.settings(), habitat_world(simulators))
    finally:
        simulators.close()
    wanted = numbers(convert(tensors, len(ACTIONS), VIEW_SHAPE, images=True).params)
    for name, value in numbers(policies.params.learnt).items():
        np.testing.assert_array_equal(value, wanted[name][None])


BAD_COMMAND_LINES = {
    "no run": (["nowhere"], "holds no run"),
    "not even a name": ([], "give one or more runs"),
    "one twice": (["RUN", "RUN"], "is given twice"),
    "no such scene": (["RUN", "--scenes", "nowhere"], "there is no scene"),
    "scenes of one name": (["RUN", "--scenes", "a/x.ply", "b/x.ply"], "would call a/x.ply 'x'"),
    "no such checkpoint": (["RUN", "--scenes", "bedroom", "--checkpoint", "1"], "no checkpoint"),
}


@pytest.mark.parametrize("name", BAD_COMMAND_LINES)
def test_bad_command_lines_are_refused(name, habitat_run, capsys) -> None:
    arguments, expected = BAD_COMMAND_LINES[name]
    arguments = [str(habitat_run.root) if word == "RUN" else word for word in arguments]
    assert expected in refused(habitat_evaluate.main, arguments, capsys)
    assert not list(habitat_run.root.glob("habitat-evaluation*"))
