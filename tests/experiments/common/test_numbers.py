"""Numbers on command lines."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from cbet_jax.config import SettingsError
from experiments.common import cli
from experiments.common.numbers import whole_number


@dataclass(frozen=True)
class Options:
    """Do something."""

    frames: int = 5
    at: tuple[int, ...] = ()
    capacity: int | None = 7
    out: Path | None = None


@pytest.mark.parametrize(
    ("word", "number"),
    [
        *(("9M", 9_000_000), ("1e6", 1_000_000), ("1.5M", 1_500_000), ("64k", 64_000)),
        *(("-3", -3), ("2_000", 2_000), ("2.5e3", 2_500), ("1G", 10**9)),
    ],
)
def test_whole_numbers_are_read(word, number):
    assert whole_number(word) == number


@pytest.mark.parametrize("word", ["many", "1.5", "1e-3", "9m", "", "M", "0x10", "1e6M1", "inf"])
def test_other_words_are_no_whole_numbers(word):
    with pytest.raises(ValueError, match="is no whole number"):
        whole_number(word)


def test_options_take_such_numbers():
    words = ["--frames", "1e6", "--at", "9M", "3", "--capacity", "None", "--out", "x"]
    assert cli.parse(Options, words) == Options(10**6, (9 * 10**6, 3), None, Path("x"))
    with pytest.raises(SettingsError, match=r"'1\.5' is no whole number"):
        cli.parse(Options, ["--frames", "1.5"])
