"""Worlds of one's own on command lines: what each command makes of them."""

import pytest

from cbet_jax.config import SettingsError
from envs.minigrid.generators import find
from experiments import minigrid_evaluate, minigrid_pretrain
from experiments.common import cli, opening
from experiments.minigrid_evaluate import EvaluateOptions
from experiments.sweeps.command import SweepOptions
from experiments.sweeps.grid import plan, read_grid
from experiments.sweeps.jobs import check
from experiments.watching import film_command as command
from experiments.watching.options import WatchOptions
from tests.support.own_world import forget, own_world


@pytest.fixture
def file(tmp_path):
    with own_world(tmp_path) as path:
        yield path


def test_a_world_is_loaded_and_found(file):
    name = cli.load_world(f"{file}:make")
    assert str(find(name)) == f"{name}: 5x3, reach the goal within 9 steps"
    forget()
    assert cli.load_world(f"{file}:make") == name  # its code was loaded before
    assert find(name).max_steps == 9


def test_what_makes_no_world_is_told_in_one_line(file):
    file.write_text("def make():\n    return 'WG'\n")
    with pytest.raises(SettingsError, match=r"my_world\.py:make: a level must have one agent"):
        cli.load_world(f"{file}:make")
    with pytest.raises(SettingsError, match="has no function 'mak'; did you mean make"):
        cli.load_world(f"{file}:mak")


def test_a_scene_whose_path_has_a_colon_is_no_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flat:one").touch()
    assert cli.load_world("flat:one") == "flat:one"


def test_evaluate_and_watch_play_it(file):
    given = f"{file}:two"
    evaluated = cli.parse(EvaluateOptions, ["DIR", "--envs", given, "Unlock"])
    minigrid_evaluate.check(evaluated)
    assert [find(name).max_steps for name in evaluated.envs] == [9, 288]
    watched = cli.parse(WatchOptions, ["--env", given])
    assert command.gridworld(watched, None) == evaluated.envs[0]


def test_a_sweep_gives_its_runs_the_file_as_it_was_named(file, tmp_path):
    words = ["--command", "pretrain", "--grid", "seeds=1,2", "--out", str(tmp_path / "sweep")]
    given = ["--preset", "smoke", "--envs", f"{file}:make", "Unlock"]
    options, fixed = cli.parse(SweepOptions, [*words, *given], return_unknown_args=True)
    assert fixed == given
    jobs = check(plan(options.out, "pretrain", read_grid(options.grid), fixed))
    worlds = (cli.load_world(f"{file}:make"), "Unlock")
    for job in jobs:
        assert opening.read(minigrid_pretrain.EXPERIMENT, job.words)[0].envs == worlds
