"""Who plays: what is loaded of a run, and where it is shown."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from cbet_jax.config import RunSettings
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.runs import checkpoint
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.metrics_table import HEADER
from cbet_jax.runs.saved_policies import load_params
from cbet_jax.runs.task_record import FRAMES
from experiments.common.presets import PRESETS
from experiments.watching import players
from tests.support.saved_runs import SEEDS, save_run
from tests.support.watched import corridor

WORLDS = ("MultiRoom-N4-S5", "KeyCorridorS3R3", "BlockedUnlockPickup")


@pytest.mark.parametrize("method", ["cbet", "rnd"])
def test_a_seed_of_a_run_is_loaded_with_the_networks_of_its_method(method, tmp_path):
    directory, world, key = RunDirectory(tmp_path), corridor(explore=True), jax.random.key(0)
    train = replace(PRESETS["smoke"].train, method=method)
    settings = RunSettings(train, ("LavaGapS5",), SEEDS, first_seed=7)
    step = jax.eval_shape(world.init, key)[1]
    networks, _ = jax.eval_shape(make_intrinsic(train, world.num_actions).init, key, step)
    save_run(tmp_path, settings, networks)

    player = players.saved_player(directory, settings, world, 1, None, Console())
    assert player.title == f"{method}, seed 8, 0 frames"
    task, params = replace(settings, explore=False), load_params(directory)
    assert players.describe(task, 0, params) == f"{method} tabula rasa, seed 7, 0 frames"
    loaded = {"policy": player.params.learnt, "intrinsic": player.intrinsic_params}
    assert jax.tree.structure(loaded["intrinsic"]) == jax.tree.structure(networks)
    assert bool(jax.tree.leaves(networks)) == (method == "rnd")
    for leaf in jax.tree.leaves(loaded):
        assert (leaf == 1).all()


def test_a_run_may_delete_the_checkpoint_that_was_read(tmp_path, monkeypatch):
    """It goes on, and keeps the last three only."""
    directory, world, key = RunDirectory(tmp_path), corridor(explore=True), jax.random.key(0)
    settings = RunSettings(replace(PRESETS["smoke"].train, method="rnd"), ("LavaGapS5",), SEEDS)
    step = jax.eval_shape(world.init, key)[1]
    intrinsic = make_intrinsic(settings.train, world.num_actions)
    networks, _ = jax.eval_shape(intrinsic.init, key, step)
    save_run(tmp_path, settings, networks)

    def make_later(*arguments):
        shutil.rmtree(directory.checkpoints)
        return intrinsic

    monkeypatch.setattr(players, "make_intrinsic", make_later)
    player = players.saved_player(directory, settings, world, 1, None, Console())
    assert not directory.checkpoints.exists()
    assert jax.tree.structure(player.intrinsic_params) == jax.tree.structure(networks)
    assert all((leaf == 1).all() for leaf in jax.tree.leaves(player.intrinsic_params))


@pytest.mark.parametrize(("folder", "frames"), [("policies", 0), ("best", None)])
def test_a_policy_kept_without_its_methods_networks_has_no_known_reward(folder, frames, tmp_path):
    settings = replace(RunSettings(replace(PRESETS["smoke"].train, method="rnd")), seeds=SEEDS)
    directory, world = save_run(tmp_path, settings), corridor(explore=True)
    directory.checkpoints.rename(tmp_path / folder)
    player = players.saved_player(directory, settings, world, 0, frames, Console())
    assert player.intrinsic_params == ()
    played = SimpleNamespace(steps=SimpleNamespace(action=jnp.zeros(2, int)))
    assert jnp.isnan(player.intrinsic.reward((), played)).all()
    assert player.title == f"rnd, seed 0, {'best by ' * (folder == 'best')}0 frames"


def test_a_title_has_the_frames_of_its_own_seeds_best_policy(tmp_path):
    directory = save_run(tmp_path)
    arrays, _ = checkpoint.read_arrays(checkpoint.checkpoints(directory.checkpoints)[-1])
    checkpoint.save(directory.best, arrays | {FRAMES: np.array([30, 50])}, Position(1, 50))
    titled = players.describe(directory.settings(), 0, load_params(directory))
    assert titled == "cbet, seed 7, best by 30 frames"
    titled = players.describe(directory.settings(), 1, load_params(directory))
    assert titled == "cbet, seed 8, best by 50 frames"


def test_a_run_is_shown_where_it_interacts_most_in_the_end(tmp_path):
    directory, settings = RunDirectory(tmp_path), RunSettings(environments=WORLDS)
    for unknown in ("", HEADER, HEADER + "0,4\n"):
        directory.metrics.write_text(unknown)
        assert players.liveliest(directory, settings) == WORLDS[0]
    rows = [
        f"{seed},{frames},interactions/{name},{value * frames}\n"
        for seed in range(2)
        for frames in range(1, 21)
        for name, value in zip(WORLDS, (0.1, 2 + seed, 3 - seed), strict=True)
    ]
    rows += ["0,21,interactions/KeyCorridorS3R3,50\n", "0,1,interactions,1000\n"]
    directory.metrics.write_text(HEADER + "".join(rows))
    assert players.liveliest(directory, settings) == "KeyCorridorS3R3"
