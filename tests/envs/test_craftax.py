"""Craftax Classic as a world, on the package: `uv run --with craftax` has it."""

import importlib.util
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs import UnsupportedEnvironment, check, check_world, craftax, make_world

INSTALLED = importlib.util.find_spec("craftax") is not None
pytestmark = pytest.mark.slow
needs_craftax = pytest.mark.skipif(not INSTALLED, reason="craftax is not installed")
GRASS, STONE, TREE, OUTSIDE = 2, 4, 5, 1
RIGHT, DO, NOOP = 2, 5, 0


@pytest.mark.skipif(INSTALLED, reason="this is the environment of its own")
def test_craftax_works_in_an_environment_of_its_own():
    with pytest.raises(UnsupportedEnvironment, match="No module named 'craftax'"):
        make_world([craftax.NAME], 2, explore=True)
    if (uv := shutil.which("uv")) is None:
        pytest.skip("uv is not installed")
    python = [uv, "run", "--extra", "dev", "--with", "craftax==1.6.1", "python", "-m", "pytest"]
    words = [*python, "-q", "-n", "0", "-m", "slow", __file__]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "passed, 1 skipped" in ended.stdout


@pytest.fixture(scope="module")
def world():
    return make_world([craftax.NAME], 2, explore=True)


@pytest.fixture(scope="module")
def played(world):
    """Two agents at the edge of the map, before two trees; the second does nothing."""
    adapted, _ = jax.jit(world.init)(jax.random.key(0))
    states = adapted.states
    row = jnp.full_like(states.map[:, 0], GRASS).at[:, 1:3].set(TREE).at[:, 3].set(STONE)
    nobody = {
        name: getattr(states, name).replace(mask=jnp.zeros_like(getattr(states, name).mask))
        for name in ("zombies", "cows", "skeletons", "arrows")
    }
    cow = nobody["cows"].replace(
        mask=nobody["cows"].mask.at[:, 0].set(True),
        position=nobody["cows"].position.at[:, 0].set(jnp.array([2, 4])),
    )
    states = states.replace(
        map=jnp.full_like(states.map, GRASS).at[:, 0].set(row),
        player_position=jnp.zeros_like(states.player_position),
        player_direction=jnp.full_like(states.player_direction, RIGHT),
        inventory=states.inventory.replace(stone=jnp.full_like(states.inventory.stone, 7)),
        **(nobody | {"cows": cow}),
    )
    adapted = adapted._replace(states=states)
    step = jax.jit(world.step)
    steps = []
    for action in (DO, RIGHT, DO):  # a tree that gave its wood is grass
        adapted, seen = step(adapted, jnp.array([action, NOOP]))
        steps.append(jax.device_get(seen))
    look = jax.vmap(lambda state: craftax.look(state, OUTSIDE))
    return states, jax.device_get(jax.jit(look)(states)), steps


@needs_craftax
def test_a_view_shows_the_map_and_what_is_carried(played):
    _, (view, panorama), _ = played
    blocks, creatures, facing = np.moveaxis(view[0, :7], -1, 0)
    expected = np.full((7, 9), OUTSIDE)  # the agent stands at row 3, column 4
    expected[3:, 4:] = GRASS
    expected[3, 5:7], expected[3, 7] = TREE, STONE
    np.testing.assert_array_equal(blocks, expected)
    assert np.argwhere(creatures).tolist() == [[5, 8]]
    assert creatures[5, 8] == 2  # a cow
    assert facing[3, 4] == RIGHT
    assert facing.sum() == RIGHT
    carried = view[0, 7:, :, 0].ravel()
    np.testing.assert_array_equal(carried[:12], [0, 7, *[0] * 10])
    np.testing.assert_array_equal(carried[12:16], 9)  # well
    np.testing.assert_array_equal(panorama[0], carried[:16])


@needs_craftax
def test_moves_creatures_and_daylight_are_no_changes(played):
    states, (view, panorama), _ = played
    later = states.replace(
        light_level=states.light_level * 0.5,
        cows=states.cows.replace(position=states.cows.position + 1),
        player_position=states.player_position + 1,
    )
    seen, around = jax.vmap(lambda state: craftax.look(state, OUTSIDE))(later)
    np.testing.assert_array_equal(around, panorama)
    assert (np.asarray(seen) != view).any()


@needs_craftax
def test_interactions_unlock_achievements(played):
    _, (_, before), steps = played
    unlocked = [step.interaction[0].tolist() for step in steps]
    assert all(unlocked[0])  # to collect wood is an achievement
    assert unlocked[1:] == [[0, 0], [0, 0]]
    assert [step.panorama[0, 0] for step in steps] == [1, 1, 2]
    np.testing.assert_allclose(steps[0].reward, [1, 0])
    np.testing.assert_array_equal(np.flatnonzero(steps[0].panorama[0] != before[0]), [0])
    np.testing.assert_array_equal(steps[0].panorama[1], before[1])
    np.testing.assert_array_equal(steps[-1].length, 3)
    assert not any(step.interaction[1].any() for step in steps)


@needs_craftax
def test_it_keeps_the_contract(monkeypatch):
    monkeypatch.setattr(check, "MOST_STEPS", 200)  # episodes may take 10,000
    world = make_world([craftax.NAME], 3, explore=True)
    problems = {found.name: found.problem for found in check_world(world) if found.problem}
    assert problems == {}


@needs_craftax
def test_it_pre_trains(tmp_path):
    command = [sys.executable, "-m", "experiments", "pretrain", "--preset", "smoke"]
    options = ["--envs", craftax.NAME, "--frames", "1600"]
    ended = subprocess.run(
        [*command, *options, "--out", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "interactions" in (tmp_path / "run" / "metrics.csv").read_text()
