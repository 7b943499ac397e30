"""Bad input: exit status 2, one line on stderr that names the problem, nothing written."""

import subprocess
import sys
from dataclasses import dataclass
from functools import partial

import pytest

from experiments import minigrid_pretrain
from experiments.common import cli, invocation
from tests.support.refusal import refused
from tests.support.tiny import ARGUMENTS

BAD_COMMAND_LINES = {
    "unknown world": (["--envs", "KeyCoridorS3R3"], "KeyCorridorS3R3"),
    "unknown method": (["--method", "cbett"], "cbet"),
    "unknown ablation": (["--method", "ablation-produkt"], "ablation-product"),
    "unknown view": (["--counts.states", "panorama"], "panoramic"),
    "episodic counts": (["--method", "ride", "--counts.reset-probability", "0"], "episode"),
    "unknown preset": (["--preset", "lptop"], "laptop"),
    "unknown option": (["--frmes", "10"], "--frames"),
    "not a number": (["--frames", "many"], "many"),
    "own settings in two lists": (["--own", "a=1", "--own", "b=1"], "--own is given twice"),
    "no value": (["--frames"], "--frames"),
    "sizes do not divide": (["--worlds", "41", "--batch", "32"], "do not divide"),
    "a rate that is no number": (["--optimizer.learning-rate", "nan"], "a finite number, not nan"),
    "codes of cells": (["--counts.keys", "ternary"], "counts.keys=ternary codes the pixels"),
    "kept too late": (["--frames", "9", "--keep-at", "10"], "keep_at must be in 1..9, not 10"),
    "no worlds": (["--envs"], "--envs names nothing"),
    "too much memory": (["--method", "count", "--seeds", "10000"], "smaller --counts.capacity"),
    "resume without a directory": (["--resume"], "--out"),
    "resume of nothing": (["--resume", "--out", "nowhere"], "holds no run"),
}


@pytest.mark.parametrize("name", BAD_COMMAND_LINES)
def test_bad_command_lines_are_refused(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, expected = BAD_COMMAND_LINES[name]
    assert expected in refused(minigrid_pretrain.main, arguments, capsys)
    assert not list(tmp_path.iterdir())


def test_what_is_in_the_way_of_a_directory_is_left_alone(capsys, tmp_path):
    (tmp_path / "thesis.tex").write_text("all my work")
    for path, problem in ((tmp_path, "not empty"), (tmp_path / "thesis.tex", "not a directory")):
        arguments = [*ARGUMENTS, "--out", str(path)]
        assert problem in refused(minigrid_pretrain.main, arguments, capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert (tmp_path / "thesis.tex").read_text() == "all my work"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"train": {}}', '{"surprise": 1}'])
def test_an_unreadable_configuration_is_refused(text, capsys, tmp_path):
    (tmp_path / "config.json").write_text(text)
    arguments = ["--resume", "--out", str(tmp_path)]
    assert "config.json" in refused(minigrid_pretrain.main, arguments, capsys, status=3)


def test_a_process_that_refuses_shows_no_traceback():
    command = [sys.executable, "-m", "experiments.minigrid_pretrain", "--envs", "Unlokc"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: unknown environment 'Unlokc'")
    assert ended.stderr.count("\n") == 1


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


def test_the_last_value_of_an_option_counts():
    words = "--preset=paper --seed_index 1 --resume --preset smoke --envs A B --out"
    said = cli.said(words.split())
    assert list(said) == ["--preset", "--seed-index", "--resume", "--envs", "--out"]
    assert [cli.value_of(said, name) for name in said] == ["smoke", "1", None, "A", None]
