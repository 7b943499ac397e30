"""Code of one's own: what of a command line is loaded, and what its names say."""

import pytest

from cbet_jax import own_code


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def make():\n    return 3\n")
    return path


def test_a_function_is_loaded_once_and_named_with_the_digest_of_its_file(file):
    name, make = own_code.load(f"{file}:make")
    assert own_code.load(f"{file}:make") == (name, make)
    assert make() == 3
    assert own_code.plain(name) == "mine.py:make"
    assert len(name) == len("mine.py:make@") + 8
    assert own_code.source(name) == file.read_bytes()
    assert own_code.source("cbet") is None


def test_an_at_sign_in_a_folders_name_begins_no_digest(tmp_path):
    folder = tmp_path / "me@host"
    folder.mkdir()
    (folder / "mine.py").write_text("def their_make():\n    return 3\n")
    name, make = own_code.load(f"{folder}/mine.py:their_make")
    assert make() == 3
    assert own_code.load(f"{folder}/{name}") == (name, make)
    assert own_code.given(name) == f"{folder}/mine.py:their_make"


@pytest.mark.parametrize(
    "words", [["--method", "{}"], ["--method={}"], ["--methods", "cbet", "{}"]]
)
def test_words_of_options_that_name_code_are_loaded(file, words):
    def load(option, value):
        code = option in ("--method", "--methods") and own_code.is_own(value)
        return own_code.load(value)[0] if code else value

    given = ["--out", "a:b", *(word.format(f"{file}:make") for word in words), "--seeds", "2"]
    found = list(own_code.changed_values(given, load))
    assert found[-3].removeprefix("--method=") == own_code.load(f"{file}:make")[0]
    assert found[:2] == given[:2]
    assert found[-2:] == given[-2:]
