"""The experiments' mains with tiny numbers, through the real compiled program."""

import csv
import inspect
import json
from dataclasses import replace
from functools import partial
from itertools import product

import jax
import pytest

import envs
from cbet_jax.config import RunSettings
from cbet_jax.runs import metrics_table
from cbet_jax.runs.directory import RunDirectory
from experiments import minigrid_evaluate, minigrid_pretrain
from experiments.common import endings, gridworlds, opening
from experiments.evaluation.evaluation_table import ALL_WORLDS
from experiments.watching import film_command as command
from tests.support.evaluated import EPISODES, WORLDS
from tests.support.saved_runs import save_run
from tests.support.tiny import ARGUMENTS, SEEDS, SETTINGS, pretrained, saved_frames
from tests.support.worlds import corridor

SHORT_FRAMES = 80
SHORT_RUN = (
    *(*ARGUMENTS, "--seeds", "1", "--frames", str(SHORT_FRAMES), "--unroll", "5"),
    *("--envs", WORLDS[0], "--lockstep", "--checkpoint-seconds", "1000"),
)
PNG = b"\x89PNG"


def test_a_run_leaves_all_that_it_should(tmp_path):
    minigrid_pretrain.main([*SHORT_RUN, "--out", str(tmp_path)])
    finished = RunDirectory(tmp_path)
    assert finished.settings().seeds == 1
    session = json.loads(finished.manifest.read_text())["sessions"][0]
    assert session["packages"]["jax"] == jax.__version__
    assert session["compile_seconds"] > 0
    assert session["frames"] == SHORT_FRAMES
    assert session["frames_per_second"] > 0
    table = metrics_table.read(finished.metrics)
    assert sorted(table["entropy"]) == [0]
    assert table["entropy"][0].frames[-1] == SHORT_FRAMES
    for name in ("", *(f"/{environment}" for environment in finished.settings().environments)):
        assert max(table[f"levels_replayed{name}"][0].values) < 0.01
    assert saved_frames(finished) == [SHORT_FRAMES]
    for name in ("learning_curves.png", "diagnostics.png"):
        assert (finished.figures / name).read_bytes().startswith(PNG)


@pytest.mark.slow
def test_a_run_ends_with_a_film(tmp_path, capsys, monkeypatch):
    options, _ = opening.read(minigrid_pretrain.EXPERIMENT, ["--preset", "smoke"])
    assert options.film
    explored = []

    def make_world(names, number, *, explore):
        explored.append(explore)
        return envs.minigrid.make_world(names, number, explore=False)  # as other tests watch it

    monkeypatch.setattr(command, "make_world", make_world)
    run = save_run(tmp_path)
    monkeypatch.setattr(minigrid_pretrain, "FILM_STEPS", 2)
    make = partial(minigrid_pretrain.film, options, run.root)
    (film,), stopped = endings.draw_film(run, make)
    assert not stopped
    assert explored == [True]
    assert film == run.root / "watch.gif"
    assert film.read_bytes().startswith(b"GIF8")
    assert f"saved: {film} (3 frames)" in capsys.readouterr().out


def test_an_evaluation_leaves_a_table_and_a_picture(tmp_path, capsys):
    run = pretrained(tmp_path)
    words = ("--episodes", str(EPISODES), "--envs", *WORLDS)
    minigrid_evaluate.main([str(run.root), *words])
    shown = capsys.readouterr().out
    rows = list(csv.DictReader((run.root / "evaluation.csv").read_text().splitlines()))
    seeds = [*map(str, range(SEEDS)), "all"]
    policies = [*product(("cbet", "untrained"), seeds), ("uniform", "0")]
    assert [(row["environment"], row["method"], row["seed"]) for row in rows] == [
        (world, *policy) for world in (*WORLDS, ALL_WORLDS) for policy in policies
    ]
    for row in rows:
        low, value, high = (
            float(row[f"unique_interactions{end}"]) for end in ("_low", "", "_high")
        )
        assert low <= value <= high
        assert row["environment"] in shown
        assert row["checkpoint_frames"] == str(saved_frames(run)[-1])
    shares = {row["method"]: row["share_of_left"] for row in rows if row["seed"] == "0"}
    assert len(set(shares.values())) == len(shares)  # each policy plays by itself
    assert (run.root / "evaluation.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("explore", "lockstep", "staggered"),
    [(True, False, True), (True, True, False), (False, False, False)],
)
def test_only_pre_training_goes_on_after_success_and_starts_apart(
    explore, lockstep, staggered, monkeypatch
):
    asked = []

    def make_world(names, number, **options):
        asked.append(options)
        return corridor(number, num_actions=7)

    monkeypatch.setattr(envs, "make_world", make_world)
    settings = RunSettings(replace(SETTINGS, lockstep=lockstep), ("Unlock",), explore=explore)
    inspect.unwrap(gridworlds.build)(settings)
    assert asked == [{"explore": explore, "staggered": staggered}]


def test_runs_of_one_program_learn_by_their_own_numbers(monkeypatch):
    made = []

    def make(several, *given, **options):
        made.extend(several)
        raise InterruptedError

    monkeypatch.setattr("cbet_jax.program.make_program", make)
    one = RunSettings(SETTINGS, ("Unlock",))
    optimizer = replace(SETTINGS.optimizer, learning_rate=0.5)
    other = replace(one, train=replace(SETTINGS, optimizer=optimizer), first_seed=9)
    with pytest.raises(InterruptedError):
        gridworlds.build(one, None, other)
    assert made == [one.train, other.train]
