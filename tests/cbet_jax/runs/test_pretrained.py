"""Policies that are part of the package: packed, unpacked, and played as runs."""

import csv
import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import cbet_jax
from cbet_jax.config import RunSettings, TransferSettings
from cbet_jax.runs import checkpoint, pretrained
from cbet_jax.runs.directory import RunDirectoryError
from cbet_jax.runs.metrics_table import HEADER
from cbet_jax.runs.reading import UnreadableError
from cbet_jax.runs.saved_policies import load_policies
from envs.habitat.simulator import ACTIONS
from envs.minigrid import make_world
from experiments import habitat_evaluate, minigrid_evaluate, minigrid_transfer, report, watch
from experiments.common.presets import PRESETS
from experiments.watching import players
from tests.support.refusal import refused
from tests.support.saved_runs import save_run
from tests.support.tiny import ARGUMENTS

NAME = "pretrained/tiny"
WORLDS = ("Unlock", "LavaGapS5")  # the longer name is the livelier one


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with one small policy: the second seed of a run."""
    root = tmp_path_factory.mktemp("trained") / "run"
    directory = save_run(root, RunSettings(PRESETS["smoke"].train, WORLDS, 2, first_seed=7))
    rows = [
        f"8,80,interactions/{world},{value}\n" for world, value in zip(WORLDS, (1, 9), strict=True)
    ]
    directory.metrics.write_text(HEADER + "".join(rows))
    (root.parent / "files").mkdir()
    pretrained.pack(directory, 1, root.parent / "files" / "tiny.npz")
    return root.parent / "files"


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """An empty working directory, and a package with that policy."""
    monkeypatch.setattr(pretrained, "FILES", folder)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_policy_comes_back_rounded_to_bfloat16(here, folder):
    directory = pretrained.unpack(Path(NAME), here)
    settings = directory.settings()
    assert (settings.seeds, settings.first_seed) == (1, 8)
    world = make_world(("LavaGapS5",), 1, explore=False)
    policies = load_policies(directory, settings, world)
    for leaf in jax.tree.leaves(policies.params):
        assert leaf.dtype == np.float32
        assert np.all(leaf == 1)  # every number of that run is the index of its seed
    assert players.liveliest(directory, settings) == "LavaGapS5"
    assert pretrained.unpack(Path(NAME), here).root == directory.root
    size = (folder / "tiny.npz").stat().st_size
    parameters = sum(leaf.size for leaf in jax.tree.leaves(policies.params))
    assert size < 3 * parameters + 10_000


def test_damage_and_numbers_that_are_none_are_refused(here, folder, capsys):
    """Bits that mean nothing, such as those of a date, may change."""
    file, draw, damaged = folder / "tiny.npz", random.Random(0), 0
    whole, packed = file.read_bytes(), pretrained.read(Path(NAME))
    try:
        for _ in range(60):
            content = bytearray(whole)
            content[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
            file.write_bytes(content)
            try:
                assert str(pretrained.read(Path(NAME))) == str(packed)
            except UnreadableError:
                damaged += 1
        assert damaged > 30
        file.write_bytes(whole[:-9])
        assert "is damaged" in refused(watch.main, [NAME], capsys, status=3)
        file.write_bytes(whole)
        arrays, record = checkpoint.read_file(file)
        arrays = {name: np.full_like(array, np.nan) for name, array in arrays.items()}
        checkpoint.write_file(file, arrays, record)
        assert "is not of finite numbers" in refused(watch.main, [NAME], capsys, status=3)
    finally:
        file.write_bytes(whole)


def test_commands_that_begin_at_once_share_what_the_first_unpacks(here, monkeypatch):
    first = pretrained.unpack(Path(NAME), here / "first")

    def save_after_another(directory, packed):
        save(directory, packed)
        shutil.copytree(first.root, here / "second" / "tiny")

    save = pretrained._save
    monkeypatch.setattr(pretrained, "_save", save_after_another)
    assert pretrained.unpack(Path(NAME), here / "second").settings() == first.settings()
    assert [path.name for path in (here / "second").iterdir()] == ["tiny"]


def test_unpacking_leaves_every_core_to_the_command(tmp_path):
    program = (
        "import jax; from pathlib import Path; from cbet_jax.runs import devices, pretrained; "
        "pretrained.unpack(Path('pretrained/cbet-multienv'), Path('runs')); "
        "devices.use_cpu(3); print(len(jax.devices()))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", program]
    assert subprocess.check_output(command, cwd=tmp_path, env=environment, text=True) == "3\n"


def test_a_policy_of_the_package_has_a_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report.main(["pretrained/cbet-multienv"])
    assert "KeyCorridorS3R3" in (tmp_path / "runs" / "report.html").read_text()
    report.main(["mine=pretrained/cbet-multienv", "--out", "mine.html"])
    assert "Report: mine" in (tmp_path / "mine.html").read_text()


@pytest.mark.slow  # it compiles an evaluation and a training program
def test_a_policy_of_the_package_is_evaluated_and_transferred(here, capsys):
    minigrid_evaluate.main([NAME, "--envs", "LavaGapS5", "--episodes", "2"])
    assert (here / "runs" / "tiny" / "evaluation.csv").is_file()
    biased = ["--from", NAME, "--env", "LavaGapS5", "--frames", "1", "--out", "task"]
    minigrid_transfer.main([*ARGUMENTS, "--seeds", "1", *biased])
    assert "finished" in capsys.readouterr().out


@pytest.mark.slow  # it compiles the ten worlds
@pytest.mark.parametrize(
    ("name", "method", "measured", "least"),
    [
        ("cbet-multienv", "cbet", "unique_interactions", 25),
        ("ngu-multienv", "ngu-episodic", "success_rate", 0.45),
        ("noveld-multienv", "noveld", "success_rate", 0.4),
        ("random-encoders-multienv", "re3", "success_rate", 0.35),
        ("count-multienv", "count", "success_rate", 0.35),
        ("elliptical-multienv", "e3b", "success_rate", 0.1),
    ],
)
def test_a_policy_of_three_worlds_explores_ten(
    name, method, measured, least, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    minigrid_evaluate.main([f"pretrained/{name}", "--episodes", "30"])
    with open(f"runs/{name}/evaluation.csv") as file:
        rows = list(csv.DictReader(file))
    (mean,) = [row for row in rows if (row["method"], row["environment"]) == (method, "all")]
    assert float(mean[measured]) >= least


@pytest.mark.slow  # it renders 6,000 panoramas
def test_the_policy_of_rooms_moves_on_where_it_has_not_been(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    habitat_evaluate.main(["pretrained/cbet-rooms", "--scenes", "studio", "--episodes", "4"])
    with open("runs/cbet-rooms/habitat-evaluation.csv") as file:
        found = {row["policy"]: float(row["positions"]) for row in csv.DictReader(file)}
    assert found["cbet"] >= 1.5 * found["uniform"]


def test_other_names_are_refused(here, capsys):
    assert f"did you mean {NAME}?" in refused(watch.main, ["pretrained/tny"], capsys)
    (here / "pretrained" / "mine").mkdir(parents=True)
    assert "holds no run" in refused(watch.main, ["pretrained/mine"], capsys)  # the user's own
    save_run(here / "runs" / "tiny")
    with pytest.raises(RunDirectoryError, match="holds another run"):
        pretrained.unpack(Path(NAME), here / "runs")


def test_a_run_of_which_only_policies_are_left_is_packed(tmp_path):
    directory = save_run(tmp_path / "run")
    pretrained.pack(directory, 0, tmp_path / "whole.npz")
    directory.checkpoints.rename(directory.policies)
    pretrained.pack(directory, 0, tmp_path / "left.npz")
    assert (tmp_path / "left.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    directory.policies.rename(tmp_path / "elsewhere")
    with pytest.raises(RunDirectoryError, match="holds no checkpoint yet"):
        pretrained.pack(directory, 0, tmp_path / "none.npz")


def test_of_transfers_those_of_one_network_are_packed(tmp_path):
    train, packed = PRESETS["smoke"].train, tmp_path / "task.npz"
    biased = TransferSettings("runs/first", 80, train.network)
    directory = save_run(tmp_path / "task", RunSettings(train, WORLDS, transfer=biased))
    with pytest.raises(RunDirectoryError, match="two networks"):
        pretrained.pack(directory, 0, packed)
    assert not packed.exists()
    tuned = RunSettings(train, WORLDS, transfer=replace(biased, fine_tune=True))
    pretrained.pack(save_run(tmp_path / "tuned", tuned), 0, packed)
    assert checkpoint.read_file(packed)[1]["settings"]["transfer"] is None


@pytest.mark.parametrize("name", pretrained.names())
def test_policies_of_the_package_are_small_and_open(name, tmp_path):
    path = pretrained.FILES / f"{name.removeprefix('pretrained/')}.npz"
    assert path.stat().st_size < 2 * 10**6
    assert re.fullmatch(r"pretrained/[a-z-]+", name)
    directory = pretrained.unpack(Path(name), tmp_path)
    settings = directory.settings()
    world = make_world(("Unlock",), 1, explore=False)
    if settings.habitat:
        world = replace(world, view_shape=(64, 64, 3), num_actions=len(ACTIONS))
    frames = load_policies(directory, settings, world).loaded.position.frames
    assert frames == settings.train.frames
    assert replace(settings, seeds=1) == settings


def test_the_newest_checkpoint_of_a_policy_of_the_package_is_its_only_one(here):
    assert cbet_jax.load(NAME, frames="newest").frames == cbet_jax.load(NAME).frames
