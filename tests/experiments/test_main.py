"""The front of all commands: its list, its dispatch, completion in shells."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import experiments
from experiments import __main__ as front
from experiments import doctor
from experiments.common import commands
from tests.support.refusal import refused

HELP = """
import sys
from experiments.__main__ import main
for name in sys.argv[1:]:
    try:
        main([name, "--help"])
    except SystemExit:
        heavy = {"flax", "jax", "navix", "optax", "orbax"} & sys.modules.keys()
        print(name, *heavy, file=sys.stderr)
"""


def test_every_command_is_listed_with_one_line(capsys):
    front.main([])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    found = dict(line.split(maxsplit=1) for line in lines)
    assert all(found.values())
    assert max(map(len, lines)) <= 110
    assert found.keys() == commands.MODULES.keys()
    files = Path(experiments.__path__[0]).glob("*.py")
    modules = {f"experiments.{path.stem}" for path in files if not path.stem.startswith("_")}
    assert set(commands.MODULES.values()) == modules


@pytest.mark.parametrize("word", ["noisy-tv", "noisy_tv", "minigrid_pretrain", "compare"])
def test_commands_have_short_names_and_those_of_their_files(word):
    module = commands.module_of(word)
    assert module is not None
    assert commands.MODULES[commands.SHORT[module]] == module


def test_the_version_is_said(capsys):
    front.main(["--version"])
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_the_first_word_starts_a_command(monkeypatch):
    started = []
    monkeypatch.setattr(doctor, "main", started.append)
    front.main(["doctor", "--simulator", "raycast"])
    assert started == [["--simulator", "raycast"]]


def test_help_imports_nothing_that_takes_seconds():
    command = [sys.executable, "-c", HELP, *commands.MODULES]
    without = {name: text for name, text in os.environ.items() if not name.startswith("JAX_")}
    ended = subprocess.run(command, capture_output=True, text=True, env=without, check=False)
    assert ended.stderr.splitlines() == [*commands.MODULES]


def test_unknown_commands_are_refused(capsys):
    assert "evaluate" in refused(front.main, ["evalate"], capsys)
    assert "bash, zsh, fish" in refused(front.main, ["--completion", "tcsh"], capsys)


@pytest.mark.parametrize("shell", front.SHELLS)
def test_shells_complete_commands_and_options(shell, capsys):
    with pytest.raises(SystemExit) as stop:
        front.main(["--completion", shell])
    script = capsys.readouterr().out
    assert not stop.value.code
    for word in (*commands.MODULES, "--beside-random", "--optimizer.learning-rate", "laptop"):
        assert word in script
