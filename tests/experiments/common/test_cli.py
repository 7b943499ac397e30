"""Bad input: exit status 2, one line on stderr that names the problem, nothing written."""

import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from cbet_jax.config import SettingsError
from experiments import minigrid_pretrain
from experiments.common import cli, invocation
from tests.support.refusal import refused
from tests.support.tiny import ARGUMENTS


def test_what_is_in_the_way_of_a_directory_is_left_alone(capsys, tmp_path):
    (tmp_path / "thesis.tex").write_text("all my work")
    for path, problem in ((tmp_path, "not empty"), (tmp_path / "thesis.tex", "not a directory")):
        arguments = [*ARGUMENTS, "--out", str(path)]
        assert problem in refused(minigrid_pretrain.main, arguments, capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert (tmp_path / "thesis.tex").read_text() == "all my work"


def test_help_says_how_the_command_is_called_and_knows_all_options(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as stop:
        minigrid_pretrain.main(["--preset", "laptop", "--help"])
    shown = capsys.readouterr().out
    assert stop.value.code == 0
    called = invocation.command_line("experiments.minigrid_pretrain")
    assert f"usage: {called} " in " ".join(shown.split())
    assert "--preset {None,paper,laptop,smoke}" in shown
    assert "--network.lstm-units" in shown
    assert "24000000" in shown  # the preset's frames


@pytest.mark.parametrize("columns", ["1", "10", "20"])
def test_help_is_read_in_the_narrowest_terminal(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit) as stop:
        minigrid_pretrain.main(["--help"])
    assert stop.value.code == 0
    assert "usage" in capsys.readouterr().out


@pytest.mark.slow
def test_a_reader_may_stop_reading_help():
    command = [sys.executable, "-u", "-m", "experiments.chainworld", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@dataclass(frozen=True)
class Numbers:
    """Options with whole numbers."""

    frames: int = 5
    at: tuple[int, ...] = ()
    capacity: int | None = 7


@pytest.mark.parametrize(
    ("word", "number"),
    [
        *(("9M", 9_000_000), ("1e6", 1_000_000), ("1.5M", 1_500_000), ("64k", 64_000)),
        *(("-3", -3), ("2_000", 2_000), ("2.5e3", 2_500), ("1G", 10**9)),
    ],
)
def test_whole_numbers_are_read(word, number):
    assert cli.whole_number(word) == number
    words = ["--frames", word, "--at", "9M", word, "--capacity", "None"]
    assert cli.parse(Numbers, words) == Numbers(number, (9 * 10**6, number), None)


@pytest.mark.parametrize("word", ["many", "1.5", "1e-3", "9m", "", "M", "0x10", "1e6M1", "inf"])
def test_other_words_are_no_whole_numbers(word, capsys):
    read = partial(cli.parse, Numbers)
    assert "is no whole number" in refused(read, ["--frames", word], capsys)


@dataclass(frozen=True)
class Place:
    place: Path = Path("here")
    frames: int = 1


def test_an_empty_value_is_refused():
    for words in (["--place", ""], ["--place="], ["--place", "a", "--frames", "1", "--place", ""]):
        with pytest.raises(SettingsError, match="--place is given an empty value"):
            cli.parse(Place, words)


def test_the_last_value_of_an_option_counts():
    words = "--preset=paper --seed_index 1 --resume --preset smoke --envs A B --out"
    said = cli.said(words.split())
    assert list(said) == ["--preset", "--seed-index", "--resume", "--envs", "--out"]
    assert [cli.value_of(said, name) for name in said] == ["smoke", "1", None, "A", None]
