"""The front of all commands: its list, its dispatch, completion in shells."""

import contextlib
import io
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


def test_the_first_word_starts_a_command(monkeypatch):
    started = []
    monkeypatch.setattr(doctor, "main", started.append)
    front.main(["doctor", "--simulator", "raycast"])
    assert started == [["--simulator", "raycast"]]


def test_unknown_commands_are_refused(capsys):
    assert "evaluate" in refused(front.main, ["evalate"], capsys)
    assert "bash or zsh" in refused(front.main, ["--completion", "tcsh"], capsys)


@pytest.mark.parametrize("words", [["--help"], ["chainworld", "--help-all"]])
def test_a_reader_may_stop_reading_help(words):
    command = [sys.executable, "-u", "-m", "experiments", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.fixture(scope="module", params=front.SHELLS)
def script(request, tmp_path_factory) -> str:
    """The completion script of one shell."""
    printed = io.StringIO()
    with contextlib.chdir(tmp_path_factory.mktemp("here")), contextlib.redirect_stdout(printed):
        front.main(["--completion", request.param])
    return printed.getvalue()


def suggested(script: str, line: str) -> list[str]:
    """What the program in a completion script suggests for the last word of a line."""
    (program,) = re.findall(r"<< 'PYTHON_EOF'.*?\n(.*?)PYTHON_EOF", script, re.DOTALL)
    words = line.split(" ")
    command = [sys.executable, "-", *words, str(len(words) - 1)]
    ended = subprocess.run(command, input=program, capture_output=True, text=True, check=True)
    return [line.split("\t")[0] for line in ended.stdout.splitlines()]


def test_shells_complete_commands_options_and_names(script):
    assert suggested(script, "cbet ") == ["-h", "--help", *sorted(commands.MODULES)]
    assert suggested(script, "cbet watch --be") == ["--beside-random"]
    assert "--optimizer.learning-rate" in suggested(script, "cbet pretrain --opt")
    assert suggested(script, "cbet pretrain --method c") == ["cbet", "count", "curiosity"]
    assert suggested(script, "cbet paper --methods cbet count-r")[0] == "count-resets"
    assert suggested(script, "cbet watch runs/x --env Unl") == ["Unlock", "UnlockPickup"]
    assert suggested(script, "cbet pretrain --envs Unlock DoorKey-8") == ["DoorKey-8x8"]
    assert "laptop" in suggested(script, "cbet pretrain --preset ")


def test_shells_complete_files(script):
    for line in ("cbet watch ru", "cbet pretrain --out ru"):
        assert suggested(script, line) == ["__TYRO_COMPLETE_FILES__"]


def test_bash_uses_the_script(script, tmp_path):
    if "#compdef" in script:
        pytest.skip("the script of another shell")
    (tmp_path / "runs").mkdir()
    ask = """
        ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _tyro_cbet; }
        ask cbet pretrain --method ri; echo "${COMPREPLY[*]}"
        ask cbet pretrain --out ru; echo "${COMPREPLY[*]}"
        ask cbet watch ru; echo "${#COMPREPLY[*]} $(complete -p cbet)"
    """
    ended = subprocess.run(
        ["bash", "-c", f"{script}\n{ask}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    method, folder, registered = ended.stdout.splitlines()
    assert (method, folder) == ("ride", "runs")
    assert registered.startswith("0 complete -o default")  # none: the shell completes files itself
