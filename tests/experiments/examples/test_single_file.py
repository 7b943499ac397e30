"""C-BET in one file computes what the package computes."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.program import make_program, seed_keys
from envs import World, make_world
from experiments.common.presets import PRESETS
from experiments.examples import single_file
from tests.support.families import slow
from tests.support.worlds import corridor

PRESET = PRESETS["laptop"]
QUICK = ("corridor",)  # compiled in a moment
SAME = {"rtol": 1e-5, "atol": 1e-5}


@cache
def world_of(environments: tuple[str, ...]) -> World:
    """Worlds of the preset's number, one object: so the file's programs are compiled once."""
    if environments != QUICK:
        return make_world(environments, PRESET.train.worlds, explore=True, staggered=True)
    world = corridor(PRESET.train.worlds, num_actions=single_file.ACTIONS)

    def step(state, action):  # to come to a place is an interaction with it
        state, seen = world.step(state, action)
        return state, seen._replace(interaction=seen.view[:, 0, 0, :2].astype(jnp.uint32))

    return replace(world, step=step)


def test_it_has_the_parameters_and_metrics_of_the_laptop_preset():
    """Only traced: slow tests compare the numbers."""
    world = world_of(QUICK)
    program = make_program(PRESET.train, world, seeds=1, iterations_per_chunk=1)
    theirs, their_metrics = jax.eval_shape(lambda: program.advance(program.init(seed_keys(1))))
    ours, metrics = jax.eval_shape(
        lambda: single_file.iterate(world, single_file.begin(world, jax.random.key(0)))
    )
    assert their_metrics.keys() >= metrics.keys() >= {"policy_loss", "value_loss", "interactions"}
    parameters = jax.tree.leaves(theirs.learner.policy)
    assert len(parameters) > 10
    for one, other in zip(jax.tree.leaves(ours.params), parameters, strict=True):
        assert one.size == other.size


@pytest.mark.parametrize(("environments", "count"), [slow(QUICK, 1), slow(PRESET.environments, 3)])
def test_it_trains_as_the_laptop_preset_does(environments, count):
    """In so many iterations, of four updates each."""
    world = world_of(environments)
    program = make_program(PRESET.train, world, seeds=1, iterations_per_chunk=count)
    theirs, their_metrics = program.advance(program.init(seed_keys(1)))
    ours = single_file.begin(world, jax.random.key(0))
    for iteration in range(count):
        ours, metrics = single_file.iterate(world, ours)
        assert metrics.keys() >= {"policy_loss", "value_loss", "entropy", "interactions"}
        for name, value in metrics.items():
            expected = their_metrics[name][iteration, 0]
            np.testing.assert_allclose(value, expected, **SAME, err_msg=name)
    assert metrics["interactions"] > 0
    parameters = zip(
        jax.tree.leaves_with_path(ours.params), jax.tree.leaves(theirs.learner.policy), strict=True
    )
    for (path, parameter), expected in parameters:
        expected = np.reshape(expected, parameter.shape)
        np.testing.assert_allclose(parameter, expected, **SAME, err_msg=jax.tree_util.keystr(path))


@pytest.mark.slow
def test_it_prints_and_draws_its_progress(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(single_file, "make_world", lambda *_, **__: world_of(QUICK))
    monkeypatch.setattr(single_file, "ITERATIONS_A_LINE", 1)
    curve = single_file.main(frames=2 * PRESET.train.iteration_frames)
    assert len(curve) == 2
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("6,400 frames")
    assert second.startswith("12,800 frames")
    assert (tmp_path / "runs" / "single_file.png").stat().st_size > 1000
