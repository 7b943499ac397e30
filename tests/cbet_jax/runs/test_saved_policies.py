"""Policies that a stranger has saved: those of a run, or refused in one line."""

import contextlib
import shutil

import jax
import numpy as np
import pytest

from cbet_jax.agent import network_agent
from cbet_jax.config import RunSettings
from cbet_jax.program import seed_keys
from cbet_jax.runs import checkpoint, manifest, policy, saved_policies
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError, checkpoints, frames_of
from cbet_jax.runs.reading import UnreadableError
from cbet_jax.runs.saved_policies import Policies, frames_of_seeds, load_params, load_policies
from envs.minigrid import make_world
from tests.support.saved_runs import save_run
from tests.support.tiny import NETWORK, SETTINGS, drawn
from tests.torture.strangers import FORGERIES, replace


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> RunDirectory:
    return save_run(tmp_path_factory.mktemp("saved") / "run")


@pytest.mark.parametrize("kind", FORGERIES)
def test_a_forged_checkpoint_is_harmless_or_refused(kind, saved, tmp_path):
    """Whatever is in it, with right checksums."""
    forge, statuses = FORGERIES[kind]
    run = RunDirectory(shutil.copytree(saved.root, tmp_path / "run"))
    replace(checkpoints(run.checkpoints)[-1] / checkpoint.FILE, forge)
    status, said = 0, ""
    try:
        load_policies(run, run.settings(), make_world(("Unlock",), 1, explore=False))
    except (RunDirectoryError, MemoryError) as error:
        status, said = 3 if isinstance(error, UnreadableError) else 2, str(error)
    assert status in statuses
    assert "\n" not in said
    with contextlib.suppress(RunDirectoryError, MemoryError):
        policy.load(run.root)  # without worlds, which would tell other shapes


def test_a_run_that_has_lost_its_checkpoints_is_said_to_have(saved, tmp_path):
    run = RunDirectory(shutil.copytree(saved.root, tmp_path / "run"))
    for folder in (run.checkpoints, run.best):
        shutil.rmtree(folder, ignore_errors=True)
    with pytest.raises(RunDirectoryError, match="holds no checkpoint yet"):
        load_params(run)
    kept = shutil.copytree(checkpoints(saved.checkpoints)[0], run.policies / "0000000000007")
    assert load_params(run).path == kept
    shutil.rmtree(run.policies)
    manifest.Session(run.manifest, ()).record(run.manifest, last_checkpoint=manifest.now())
    with pytest.raises(RunDirectoryError, match="has lost its checkpoints"):
        load_params(run)


def test_the_best_policies_are_found_by_their_frames(saved, tmp_path):
    """No checkpoint of that moment is left."""
    run = RunDirectory(shutil.copytree(saved.root, tmp_path / "run"))
    newest = checkpoints(run.checkpoints)[-1]
    shutil.rmtree(run.best, ignore_errors=True)
    run.best.mkdir()
    best = newest.rename(run.best / newest.name)
    assert load_params(run, frames_of(best)).path == best


def test_a_checkpoint_goes_before_the_best_policies_of_the_same_frames(saved, tmp_path):
    """Among those a seed's may be older."""
    run = RunDirectory(shutil.copytree(saved.root, tmp_path / "run"))
    newest = checkpoints(run.checkpoints)[-1]
    shutil.copytree(newest, run.best / newest.name)
    assert load_params(run, frames_of(newest)).path == newest
    assert load_params(run).path == load_params(run, "best").path == run.best / newest.name


def test_a_chosen_checkpoint_that_its_run_deletes_meanwhile_is_not_damaged(
    saved, tmp_path, monkeypatch
):
    run = RunDirectory(shutil.copytree(saved.root, tmp_path / "run"))
    chosen, read = checkpoints(run.checkpoints)[-1], checkpoint.read_arrays

    def late(path, names):
        shutil.rmtree(path)
        return read(path, names)

    monkeypatch.setattr(checkpoint, "read_arrays", late)
    with pytest.raises(RunDirectoryError, match="no checkpoint at") as said:
        load_params(run, frames_of(chosen))
    assert not isinstance(said.value, UnreadableError)


def test_frames_of_best_policies_are_known_after_their_file_has_gone(saved, tmp_path):
    """A training that goes on keeps two files of best policies."""
    run = RunDirectory(shutil.copytree(saved.root, tmp_path / "run"))
    shutil.rmtree(run.best, ignore_errors=True)
    seeds = run.settings().seeds
    wanted = np.arange(seeds) + 7
    arrays, position = checkpoint.read_arrays(checkpoints(run.checkpoints)[-1])
    checkpoint.save_new(run.best, {**arrays, "best_frames": wanted}, position, kept=2)
    loaded = load_params(run, "best")
    shutil.rmtree(loaded.path)
    assert frames_of_seeds(loaded, seeds) == wanted.tolist()
    assert loaded.position.frames not in wanted


def test_a_run_began_with_the_networks_of_its_own_seeds():
    settings = RunSettings(SETTINGS, seeds=2, first_seed=7)
    policies, keys = Policies(network_agent(NETWORK, 7, (7, 7, 3)), drawn(), None), []

    def init(given):
        keys.append(jax.random.key_data(given))
        return policies.params

    saved_policies.untrained(policies, settings, init)
    np.testing.assert_array_equal(keys[0], jax.random.key_data(seed_keys(2, 7)))
