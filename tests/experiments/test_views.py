"""Runs whose policies see otherwise: the view is recorded, played with and not mixed."""

import csv

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import cbet_jax
from cbet_jax.config import ObservationSettings
from cbet_jax.program import seed_keys
from cbet_jax.runs import checkpoint
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.directory import RunDirectory
from envs.minigrid import make_world
from experiments import minigrid_evaluate, minigrid_pretrain, minigrid_transfer, watch
from experiments.common import cli, gridworlds, opening
from experiments.evaluation.gridworlds import open_run
from tests.support.evaluated import EPISODES
from tests.support.evaluated import WORLDS as PLAYED
from tests.support.own_world import forget, own_world
from tests.support.refusal import refused
from tests.support.tiny import (
    ARGUMENTS,
    CHUNK_FRAMES,
    SEEDS,
    WORLDS,
    drawn,
    pretrained,
    saved_frames,
)
from tests.support.unrendered import leave_untrained

WORLD = "LavaGapS5?max_steps=30"
CORRIDOR = "WGWGWGWGWGWG\nWG>>KYLYGGWG\nWGWGWGWGWGWG"
TINY = (*ARGUMENTS, "--frames", str(CHUNK_FRAMES))
PIXELS = ("--envs", WORLD, "--view", "rgb", "--view-size", "5")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunDirectory:
    """A run of policies that see pixels, in a world with another time limit, and do not learn."""
    run = RunDirectory(tmp_path_factory.mktemp("views") / "rgb")
    with pytest.MonkeyPatch.context() as patch:
        leave_untrained(patch)
        minigrid_pretrain.main([*TINY, *PIXELS, "--out", str(run.root)])
    policies = drawn(view=(40, 40, 3), network=run.settings().train.network).learnt
    checkpoint.save(run.checkpoints, {"learner": {"policy": policies}}, Position(1, CHUNK_FRAMES))
    return run


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


def test_a_program_trains_such_policies(run):
    """It is traced, not compiled; the slow test below runs it."""
    program = gridworlds.build(run.settings())
    state = jax.eval_shape(program.init, seed_keys(SEEDS))
    assert state.actor.step.other_view.shape == (SEEDS, WORLDS, 40, 40, 3)
    after, _ = jax.eval_shape(program.advance, state)
    chex.assert_trees_all_equal_shapes_and_dtypes(after, state)


@pytest.mark.slow
def test_policies_that_see_pixels_are_trained(tmp_path):
    minigrid_pretrain.main([*TINY, *PIXELS, "--out", str(tmp_path)])
    assert saved_frames(RunDirectory(tmp_path)) == [CHUNK_FRAMES]


@pytest.mark.slow
def test_policies_are_evaluated_and_watched_with_their_view(run, capsys):
    minigrid_evaluate.main([str(run.root), "--episodes", str(EPISODES), "--envs", *PLAYED])
    with (run.root / "evaluation.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} >= {"cbet", "untrained"}
    watch.main([str(run.root), "--out", str(run.root / "shown.gif"), "--steps", "2"])
    assert (run.root / "shown.gif").stat().st_size


@pytest.mark.slow
def test_a_transfer_sees_what_its_policy_has_seen(run, tmp_path, not_trained):
    line = ["--from", str(run.root), "--env", "LavaGapS5", *TINY]
    minigrid_transfer.main([*line, "--out", str(tmp_path / "task")])
    assert saved_frames(RunDirectory(tmp_path / "task")) == [0]
    settings = RunDirectory(tmp_path / "task").settings()
    assert settings.observation == ObservationSettings("rgb", 5)


def test_a_transfer_that_would_see_otherwise_is_refused(run, capsys):
    line = ["--from", str(run.root), "--env", "LavaGapS5", *TINY, "--view", "egocentric"]
    told = refused(minigrid_transfer.main, line, capsys)
    assert "has rgb views of 5 x 5 cells, not egocentric views of 5 x 5 cells" in told


def test_full_views_of_other_grids_are_not_transferred(tmp_path, capsys):
    full = ObservationSettings("full")
    run = pretrained(tmp_path, environments=("DoorKey-5x5",), observation=full).root
    line = ["--from", str(run), "--env", "DoorKey-6x6", *TINY]
    told = refused(minigrid_transfer.main, line, capsys)
    assert "has full views of 5 x 5 cells, and DoorKey-6x6 has 6 x 6" in told
    told = refused(minigrid_evaluate.main, [str(run), "--envs", "DoorKey-6x6"], capsys)
    assert "its grid of 6 x 6 cells is larger than the 5 x 5 of the full view" in told


OWN = """
    from envs import make_world


    def whole(num_worlds):
        return make_world(["Unlock"], num_worlds, explore=False, view="egocentric", view_size=5)


    def make():
        return "WGWGWGWGWGWG\\nWG>>KYLYGGWG\\nWGWGWGWGWGWG"
"""


def test_policies_of_own_worlds_play_elsewhere_and_whole_worlds_again(tmp_path):
    with own_world(tmp_path, OWN) as file:
        maps, whole = (cli.load_world(f"{file}:{function}") for function in ("make", "whole"))
        small, view = ObservationSettings("egocentric", 5), (5, 5, 3)
        of_whole = pretrained(tmp_path / "whole", environments=(whole,), view=view)
        assert open_run(of_whole.root, (whole,), None, Console()).environments == (whole,)
        of_maps = pretrained(tmp_path / "maps", view=view, environments=(maps,), observation=small)
        forget()  # as in another process, which names only the world that it plays
        assert open_run(of_maps.root, ("Unlock",), None, Console()).environments == ("Unlock",)
        options = gridworlds.view_options(of_maps.settings())
        assert options.keys() == {"view", "view_size", "see_through_walls"}


def test_a_policy_that_sees_otherwise_is_not_evaluated(run):
    world = make_world(["LavaGapS5"], 2, explore=False)
    with pytest.raises(ValueError, match="sees rgb views of 5 x 5 cells, which this does not show"):
        cbet_jax.load(run.root).evaluate(world, jax.random.key(0))


def test_a_resumed_run_keeps_the_network_that_it_was_given(tmp_path):
    run = RunDirectory(tmp_path / "run")
    line = ["--preset", "smoke", "--view", "rgb", "--network.conv-layers", "4"]
    run.create(opening.read(minigrid_pretrain.EXPERIMENT, line)[0].settings)
    for more in ([], ["--view", "rgb"]):
        resumed = ["--resume", "--out", str(run.root), *more]
        options, _ = opening.read(minigrid_pretrain.EXPERIMENT, resumed)
        assert options.settings.train.network.conv_layers == 4


@pytest.mark.slow
def test_counts_see_the_same_whatever_policies_see(tmp_path):
    """An agent takes a key, opens a door, and goes through it."""

    def played(**options):
        world = make_world([name], 4, explore=True, **options)
        actions = jnp.full((5, 4), jnp.array([3, 2, 5, 2, 2])[:, None])
        play = lambda key: jax.lax.scan(world.step, world.init(key)[0], actions)[1]  # noqa: E731
        return jax.jit(play)(jax.random.key(0))

    with own_world(tmp_path, f"def make():\n    return {CORRIDOR!r}\n") as file:
        name = cli.load_world(f"{file}:make")
        usual, full = played(), played(view="full")
    assert (usual.other_view, full.policy_view.shape) == (None, (5, 4, 6, 3, 3))
    assert len({panorama.tobytes() for panorama in np.asarray(full.panorama[:, 0])}) == 5
    jax.tree.map(np.testing.assert_array_equal, usual, full._replace(other_view=None))
