"""Checking a method from the command line: a line for each check, and the exit status."""

import pytest

from cbet_jax.method_check.check import CHECKS
from experiments import check_method
from experiments.common import cli
from tests.support.own_method import own_method
from tests.support.refusal import refused

METHOD = """
    import jax.numpy as jnp

    from cbet_jax.intrinsic.interface import Intrinsic


    def make(settings, num_actions):
        return Intrinsic("ones", 1.0, lambda params, played: jnp.ones(played.steps.action.shape))


    def wrong(settings, num_actions):
        return Intrinsic("wrong", 1.0, lambda params, played: jnp.ones(3))


    def raising(settings, num_actions):
        return settings.nothing
"""


@pytest.fixture
def file(tmp_path):
    with own_method(tmp_path, METHOD) as path:
        yield path


def test_each_check_is_a_line(file, capsys):
    check_method.main([f"{file}:make", "--no-learn", "--lasting"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines] == list(CHECKS)
    assert [line.split(": ", 1)[1] for line in lines if not line.endswith(": ok")] == [
        "skipped: its memory outlives episodes",
        "skipped: left out",
    ]


def test_a_failed_check_is_status_1(file, capsys):
    with pytest.raises(SystemExit) as stop:
        check_method.main([f"{file}:wrong"])
    assert stop.value.code == cli.FAILED
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("shapes and types: failed: reward must return float32[12, 3]")
    assert others
    assert all(": skipped: shapes and types must be right first" in line for line in others)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["{}:mak"], "has no function 'mak'; did you mean make"),
        (["{}:raising"], "bonus.py:16: AttributeError: 'TrainSettings' object has no attr"),
        (["cbet", "--own", "a=1"], "cbet has no settings of its own"),
        (["cebt"], "unknown method 'cebt'; did you mean cbet"),
    ],
)
def test_bad_input_is_one_line(file, words, line, capsys):
    words = [word.format(file) for word in words]
    assert line in refused(check_method.main, words, capsys)
