"""Runs whose policies see otherwise: the view is recorded, played with and not mixed."""

import csv

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cbet_jax
from cbet_jax.config import ObservationSettings
from cbet_jax.runs.directory import RunDirectory
from envs.minigrid import make_world
from experiments import minigrid_evaluate, minigrid_pretrain, minigrid_transfer, watch
from tests.support.refusal import refused
from tests.support.tiny import ARGUMENTS, CHUNK_FRAMES, pretrained
from tests.support.unrendered import leave_unrendered

WORLD = "Unlock?max_steps=30"
TINY = (*ARGUMENTS, "--frames", str(CHUNK_FRAMES), "--seeds", "1")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunDirectory:
    """A run of policies that see pixels, in a world with another time limit."""
    root = tmp_path_factory.mktemp("views") / "rgb"
    with pytest.MonkeyPatch.context() as patch:
        leave_unrendered(patch)
        minigrid_pretrain.main(
            [*TINY, "--envs", WORLD, "--view", "rgb", "--view-size", "5", "--out", str(root)]
        )
    return RunDirectory(root)


def test_the_view_and_the_time_limit_are_recorded(run):
    settings = run.settings()
    assert settings.observation == ObservationSettings("rgb", 5)
    assert settings.environments == (WORLD,)
    assert settings.train.network.brightest == 255
    policy = cbet_jax.load(run.root)
    actions, _ = policy(
        np.zeros((3, 40, 40, 3), np.uint8), policy.initial_state(3), jax.random.key(0)
    )
    assert actions.shape == (3,)


def test_policies_are_evaluated_and_watched_with_their_view(run, capsys):
    minigrid_evaluate.main([str(run.root), "--episodes", "2", "--envs", WORLD])
    with (run.root / "evaluation.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} >= {"cbet", "untrained"}
    watch.main([str(run.root), "--out", str(run.root / "shown.gif"), "--steps", "2"])
    assert (run.root / "shown.gif").stat().st_size


def test_a_transfer_sees_what_its_policy_has_seen(run, tmp_path, capsys):
    line = ["--from", str(run.root), "--env", "Unlock", *TINY]
    minigrid_transfer.main([*line, "--out", str(tmp_path / "task")])
    settings = RunDirectory(tmp_path / "task").settings()
    assert settings.observation == ObservationSettings("rgb", 5)
    told = refused(minigrid_transfer.main, [*line, "--view", "egocentric"], capsys)
    assert "has rgb views of 5 x 5 cells, not egocentric views of 5 x 5 cells" in told


def test_full_views_of_other_grids_are_not_transferred(tmp_path, capsys):
    full = ObservationSettings("full")
    run = pretrained(tmp_path, environments=("DoorKey-5x5",), observation=full).root
    line = ["--from", str(run), "--env", "DoorKey-6x6", *TINY]
    told = refused(minigrid_transfer.main, line, capsys)
    assert "has full views of 5 x 5 cells, and DoorKey-6x6 has 6 x 6" in told
    told = refused(minigrid_evaluate.main, [str(run), "--envs", "DoorKey-6x6"], capsys)
    assert "its grid of 6 x 6 cells is larger than the 5 x 5 of the full view" in told


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--view", "pixels"), "full-rgb"),
        (("--view-size", "6"), "view_size must be odd and in 3..31, not 6"),
        (("--view", "full", "--view-size", "9"), "a full view has no view_size"),
        (("--envs", "Unlock?max_steps=0"), "N in 1..9999999"),
        (("--envs", "Fetch-5x5-N2"), "mission is in words"),
    ],
)
def test_bad_views_limits_and_worlds_are_refused(options, line, capsys):
    assert line in refused(minigrid_pretrain.main, [*TINY, *options], capsys)


def test_counts_see_the_same_whatever_policies_see():
    made = [make_world(["DoorKey-5x5"], 4, explore=True, **o) for o in ({}, {"view": "full"})]
    states = [world.init(jax.random.key(0))[0] for world in made]
    steps = [jax.jit(world.step) for world in made]
    for action in (2, 0, 2, 3, 5, 1):
        seen = []
        for index, step in enumerate(steps):
            states[index], after = step(states[index], jnp.full(4, action, jnp.int32))
            seen.append(after)
        usual, full = seen
        assert (usual.other_view, full.policy_view.shape) == (None, (4, 5, 5, 3))
        jax.tree.map(np.testing.assert_array_equal, usual, full._replace(other_view=None))
