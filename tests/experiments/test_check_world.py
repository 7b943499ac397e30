"""Checking a world from the command line: a line for each check, and the exit status."""

import pytest

from envs.check import CHECKS
from experiments import check_world, minigrid_pretrain
from experiments.common import cli
from tests.support.own_world import own_world
from tests.support.refusal import refused
from tests.support.tiny import ARGUMENTS

WORLDS = """
    from dataclasses import replace

    import jax.numpy as jnp

    from envs import from_gymnax
    from tests.support.gymnax_style import PARAMS, Walk


    def make(num_worlds):
        return from_gymnax(Walk(), PARAMS, num_worlds)


    def wrong(num_worlds):
        world = make(num_worlds)

        def step(state, action):
            state, seen = world.step(state, action)
            return state, seen._replace(reward=seen.length)

        return replace(world, step=step)


    def four(num_worlds):
        return make(4)


    def raising(num_worlds):
        return num_worlds.nothing
"""


@pytest.fixture
def file(tmp_path):
    with own_world(tmp_path, WORLDS) as path:
        yield path


def test_each_check_is_a_line(file, capsys):
    check_world.main([f"{file}:make", "--worlds", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{name}: ok" for name in ("record", "shapes and types", *CHECKS)]


def test_a_world_of_one_size_only_is_refused(file, capsys):
    line = refused(check_world.main, [f"{file}:four", "--worlds", "4"], capsys)
    assert "it has 4 worlds, not the 5 asked for" in line


def test_a_failed_check_is_status_1_and_such_a_world_is_not_trained_in(file, capsys):
    with pytest.raises(SystemExit) as stop:
        check_world.main([f"{file}:wrong"])
    assert stop.value.code == cli.FAILED
    problem = "step: reward must be float32[4], not int32[4]"
    assert f"shapes and types: failed: {problem}" in capsys.readouterr().out
    line = refused(minigrid_pretrain.main, [*ARGUMENTS, "--envs", f"{file}:wrong"], capsys)
    assert "the world my_world.py:wrong: step: reward must be float32[2], not int32[2]" in line


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["{}:mak"], "has no function 'mak'; did you mean make"),
        (["{}:raising"], "my_world.py:29: AttributeError: 'int' object has no attribute"),
        (["my_world.py"], "name a function of that file, too: my_world.py:FUNCTION"),
        (["Unlokc"], "unknown environment 'Unlokc'; did you mean Unlock"),
        (["Unlock", "--worlds", "0"], "worlds must be at least 1"),
    ],
)
def test_bad_input_is_one_line(file, words, line, capsys):
    assert line in refused(check_world.main, [word.format(file) for word in words], capsys)
