"""C-BET in one file computes what the package computes."""

import jax
import numpy as np
import pytest

from cbet_jax.program import make_program, seed_keys
from envs import World, make_world
from experiments.common.presets import PRESETS
from experiments.examples import single_file

PRESET = PRESETS["laptop"]
ITERATIONS = 3  # of four updates each
SAME = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture(scope="module")
def world() -> World:
    """The worlds of the preset, one object: so the file's programs are compiled once."""
    return make_world(PRESET.environments, PRESET.train.worlds, explore=True, staggered=True)


def test_it_trains_as_the_laptop_preset_does(world):
    program = make_program(PRESET.train, world, seeds=1, iterations_per_chunk=ITERATIONS)
    theirs, their_metrics = program.advance(program.init(seed_keys(1)))
    ours = single_file.begin(world, jax.random.key(0))
    for iteration in range(ITERATIONS):
        ours, metrics = single_file.iterate(world, ours)
        assert metrics.keys() >= {"policy_loss", "value_loss", "entropy", "interactions"}
        for name, value in metrics.items():
            expected = their_metrics[name][iteration, 0]
            np.testing.assert_allclose(value, expected, **SAME, err_msg=name)
    parameters = zip(
        jax.tree.leaves_with_path(ours.params), jax.tree.leaves(theirs.params), strict=True
    )
    for (path, parameter), expected in parameters:
        expected = np.reshape(expected, parameter.shape)
        np.testing.assert_allclose(parameter, expected, **SAME, err_msg=jax.tree_util.keystr(path))


def test_it_prints_and_draws_its_progress(world, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(single_file, "make_world", lambda *_, **__: world)
    monkeypatch.setattr(single_file, "ITERATIONS_A_LINE", 2)
    curve = single_file.main(frames=4 * PRESET.train.iteration_frames)
    assert len(curve) == 2
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("12,800 frames")
    assert second.startswith("25,600 frames")
    assert (tmp_path / "runs" / "single_file.png").stat().st_size > 1000
