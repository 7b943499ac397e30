"""Methods of one's own: found by the name of their file, named with its digest, checked."""

import sys

import pytest

from cbet_jax import own_code
from cbet_jax.config import SettingsError, TrainSettings
from cbet_jax.intrinsic import make_intrinsic, own
from tests.support.own_method import own_method

BONUS = '''
    """One for each step, times a scale."""

    from dataclasses import dataclass

    import jax.numpy as jnp

    from cbet_jax.config import SettingsError
    from cbet_jax.intrinsic.interface import Intrinsic


    @dataclass(frozen=True)
    class Own:
        scale: float = 2.0
        power: int = 1
        squared: bool = False
        word: str = "x"
        nothing: int | None = None
        pair: tuple[int, int] = (1, 2)

        def __post_init__(self):
            if self.scale < 0:
                raise SettingsError("scale must be at least 0")


    def make(settings, num_actions, own=Own()):
        scale = own.scale**own.power * (-1 if own.squared else 1)
        return Intrinsic("bonus", scale, lambda params, played: jnp.ones(played.first.shape))


    def plain(settings, num_actions):
        return Intrinsic("plain", 0.5, lambda params, played: jnp.ones(played.first.shape))


    def wrong(settings, num_actions):
        return None


    def few():
        return None
'''


@pytest.fixture
def file(tmp_path):
    with own_method(tmp_path, BONUS) as path:
        yield path


def _coefficient(name, *words):
    return make_intrinsic(TrainSettings(method=name, own=words), 3).coefficient


def test_a_file_is_named_with_its_digest(file):
    name = own.load(f"{file}:make")
    assert name.startswith("bonus.py:make@")
    assert own.load(f"{file}:make") == name
    assert own_code.source(name) == file.read_bytes()
    assert _coefficient(name) == 2.0
    file.write_text(file.read_text().replace("2.0", "3.0"))
    other = own.load(f"{file}:make")
    assert other != name
    assert _coefficient(other) == 3.0
    changed = f"{file}:make@{name.rpartition('@')[2]}"
    with pytest.raises(SettingsError, match=r"bonus\.py:make was changed: it is no longer "):
        own.load(changed)


def test_an_installed_module_is_named_too(file, monkeypatch):
    monkeypatch.syspath_prepend(file.parent)
    name = own.load("bonus:plain")
    del sys.modules["bonus"]
    assert name == own.load(f"{file}:plain")
    assert _coefficient(name) == 0.5


def test_own_settings_are_read_by_their_types(file):
    name = own.load(f"{file}:make")
    assert _coefficient(name, "scale=3", "power=2", "squared=true", "word=y") == -9.0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("scale",), "--own takes NAME=VALUE, not 'scale'"),
        (("skale=1",), "no setting 'skale'; did you mean scale"),
        (("power=1.5",), "own setting power takes a int, not '1.5'"),
        (("scale=nan",), "own setting scale takes a float, not 'nan'"),
        (("scale=-1",), "scale must be at least 0"),
        (("scale=1", "scale=2"), "--own names scale twice"),
        (("nothing=1",), "own setting nothing is no number or word: --own cannot set it"),
    ],
)
def test_wrong_own_settings_are_refused(file, words, line):
    with pytest.raises(SettingsError, match=line):
        _coefficient(own.load(f"{file}:make"), *words)


def test_a_method_without_settings_refuses_them(file):
    with pytest.raises(SettingsError, match="no settings of its own"):
        _coefficient(own.load(f"{file}:plain"), "scale=1")


def test_what_cannot_be_loaded_is_told_in_one_line(file):
    for place, line in (
        ("nowhere.py:make", "nowhere.py cannot be read: No such file"),
        ("nowhere.module:make", "cannot be loaded: ModuleNotFoundError"),
        (f"{file}:mak", "has no function 'mak'; did you mean make"),
    ):
        with pytest.raises(SettingsError, match=line):
            own.load(place)
    with pytest.raises(SettingsError, match=r"bonus\.py:few: TypeError: .* takes 0 positional"):
        _coefficient(own.load(f"{file}:few"))
    with pytest.raises(SettingsError, match="must return an Intrinsic, not NoneType"):
        _coefficient(own.load(f"{file}:wrong"))
    file.write_text("1 / 0")
    with pytest.raises(SettingsError, match=r"cannot be loaded: .*bonus\.py:1: ZeroDivisionError"):
        own.load(f"{file}:make")
    file.write_text("make = int")
    with pytest.raises(SettingsError, match="cannot be loaded: ValueError: no signature found"):
        own.load(f"{file}:make")


def test_code_that_no_command_line_names_is_not_run():
    with pytest.raises(
        SettingsError, match=r"if you trust it, add --method bonus\.py:make, with the path"
    ):
        _coefficient("bonus.py:make@12345678")
