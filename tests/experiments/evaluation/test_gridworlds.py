"""Policies that play in many worlds."""

from functools import wraps
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from rich.console import Console

from cbet_jax import evaluate
from cbet_jax.config import RunSettings, TransferSettings
from cbet_jax.evaluate import NOTHING_LEARNT, Episodes
from cbet_jax.runs import checkpoint
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.directory import RunDirectoryError
from envs.errors import UnsupportedEnvironment
from envs.minigrid.generators import GENERATORS, own_worlds
from envs.minigrid.generators.own_worlds import UnnamedWorld
from experiments import minigrid_evaluate
from experiments.common.commands import AND
from experiments.evaluation import evaluation_table, gridworlds
from experiments.evaluation.evaluation_table import UNIFORM, UNTRAINED
from tests.support.evaluated import EPISODES, WORLDS
from tests.support.own_world import forget
from tests.support.tiny import NETWORK, SEEDS, SETTINGS, drawn, pretrained
from tests.support.worlds import corridor


@pytest.mark.slow
def test_one_program_plays_every_run_in_every_world(tmp_path, monkeypatch):
    traced = []

    @wraps(evaluate._evaluate)  # the program's name
    def play(agent, *arguments):
        traced.append(agent)
        return evaluate_one(agent, *arguments)

    evaluate_one = evaluate._evaluate
    monkeypatch.setattr(evaluate, "_evaluate", play)
    console = Console(quiet=True)
    runs = [
        gridworlds.open_run(pretrained(tmp_path / name).root, worlds, None, console)
        for name, worlds in (("one", WORLDS), ("other", WORLDS[1:]))
    ]
    played = dict(gridworlds.play_each_world(runs, EPISODES, 0, console))
    assert len(traced) == 2  # for uniform actions, and for the network
    assert [*played] == [*WORLDS]
    assert [[*of_runs] for of_runs in played.values()] == [[0], [0, 1]]
    for world, of_runs in played.items():
        for policies in of_runs.values():
            assert [*policies] == ["cbet", UNTRAINED, UNIFORM]
            for name, episodes in policies.items():
                assert episodes.length.shape == (1 if name == UNIFORM else SEEDS, EPISODES)
                assert (episodes.length <= GENERATORS[world].max_steps).all()
                np.testing.assert_array_equal(episodes.actions.sum(-1), episodes.length)


def test_a_world_with_rules_of_its_own_is_evaluated_alone(tmp_path):
    own_worlds.add("my.py:make@12345678", corridor)
    run = pretrained(tmp_path, actions=3)
    names = ("my.py:make@12345678",)
    opened = gridworlds.open_run(run.root, names, None, Console())
    (rows,) = gridworlds.play([opened], 4, seed=0, console=Console())
    assert {row.environment for row in rows} == {*names}
    assert [row.method for row in rows] == ["cbet"] * 3 + ["untrained"] * 3 + ["uniform"]
    assert all(row.measured["episode_length"].value == 7 for row in rows)
    evaluation_table.save(tmp_path / "table.csv", rows, {"0": 80, "1": 80}, 0)
    header, *lines = (tmp_path / "table.csv").read_text().splitlines()
    assert "share_of_0,share_of_1,share_of_2,action_entropy" in header
    assert len(lines) == len(rows)
    with pytest.raises(UnsupportedEnvironment, match="played alone"):
        gridworlds.open_run(run.root, (*names, "Unlock"), None, Console())
    forget()


def test_a_run_in_a_world_of_ones_own_says_what_to_name(tmp_path):
    run = pretrained(tmp_path, actions=3, environments=("my.py:make@12345678",))
    with pytest.raises(UnnamedWorld, match=r"--envs my\.py:make"):
        gridworlds.open_run(run.root, (), None, Console())
    with pytest.raises(RunDirectoryError, match="3 actions, but Unlock has 7"):
        gridworlds.open_run(run.root, ("Unlock",), None, Console())


@pytest.mark.parametrize("transfer", [None, TransferSettings("source", 0, NETWORK)])
def test_each_policy_plays_under_its_own_name(transfer, monkeypatch):
    play = lambda world, agent: lambda params, *keys: params  # noqa: E731
    monkeypatch.setattr(gridworlds, "make_evaluator", play)
    monkeypatch.setattr(gridworlds, "make_initializer", lambda agent: None)
    monkeypatch.setattr(gridworlds, "untrained", lambda *given: "fresh")
    settings = RunSettings(SETTINGS, explore=transfer is None, transfer=transfer)
    policies = SimpleNamespace(agent=None, params="learnt")
    run = SimpleNamespace(environments=("Unlock",), settings=settings, policies=policies)
    make = lambda observer: SimpleNamespace(num_actions=7)  # noqa: E731
    played = gridworlds._Playing(make, [run]).play("Unlock", None, None)
    names = ("transfer", "frozen") if transfer else ("cbet", "untrained")
    both = dict(zip(names, ("learnt", "fresh"), strict=True))
    assert played == {0: {**both, "uniform": NOTHING_LEARNT}}


def test_the_checkpoint_that_is_asked_for_plays(tmp_path):
    run = pretrained(tmp_path)
    state = {"learner": {"policy": jax.tree.map(lambda leaf: leaf + 1, drawn().learnt)}}
    checkpoint.save(run.checkpoints, state, Position(2, 160))
    for frames in (80, 160):
        opened = gridworlds.open_run(run.root, ("LavaGapS5",), frames, Console())
        assert opened.policies.loaded.position.frames == frames


def test_rows_have_the_numbers_of_the_runs_seeds():
    run = SimpleNamespace(settings=RunSettings(SETTINGS, seeds=2, first_seed=5), unmeasured=())
    ones = np.ones((2, 4))
    of_two = Episodes(ones > 0, ones, ones, ones, np.ones((2, 4, 7)))
    of_one = jax.tree.map(lambda leaf: leaf[:1], of_two)
    rows = gridworlds.table(run, {"Unlock": {"cbet": of_two, "uniform": of_one}}, 3)
    found = [(row.method, row.seed) for row in rows]
    assert found == [("cbet", "5"), ("cbet", "6"), ("cbet", "all"), ("uniform", "3")]


def test_evaluations_of_one_command_have_each_their_own_words(tmp_path, monkeypatch):
    """As a study joins them, of one run after several frames."""

    class PlayedError(Exception):
        pass

    def play(runs, *given):
        told.append((*runs, given[:2]))
        raise PlayedError

    told, open_run = [], lambda path, worlds, checkpoint, console: (path.name, worlds, checkpoint)
    monkeypatch.setattr(gridworlds, "open_run", open_run)
    monkeypatch.setattr(gridworlds, "play", play)
    run = str(pretrained(tmp_path / "run").root)
    both = ["--episodes", "5", "--seed", "9"]
    other = [run, "--checkpoint", "160", "--envs", "LavaGapS5", *both]
    with pytest.raises(PlayedError):
        minigrid_evaluate.main([run, "--checkpoint", "80", *both, AND, *other])
    assert told == [(("run", (), 80), ("run", ("LavaGapS5",), 160), (5, 9))]
