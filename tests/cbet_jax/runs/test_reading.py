"""Files of strangers: read whole and as they are, or refused in one line."""

import csv
import os
from pathlib import Path

import pytest

from cbet_jax.config import SettingsError
from cbet_jax.runs import reading
from cbet_jax.runs.reading import UnreadableError, read_bytes, read_json, read_table


def test_what_is_read_is_what_is_there(tmp_path):
    path, link = tmp_path / "a.csv", tmp_path / "latest.csv"
    path.write_bytes(b'name,value\n"one\nline",1\n\xff,2,3\n4\n')
    link.symlink_to(path)
    for each in (path, link):
        assert read_bytes(each) == path.read_bytes()
        assert read_bytes(each, 4) == b"name"
        assert read_table(each) == (
            ("name", "value"),
            [
                {"name": "one\nline", "value": "1"},
                {"name": "\ufffd", "value": "2", None: ["3"]},
                {"name": "4", "value": None},
            ],
        )


NOT_READ = {
    "it is no ordinary file": [
        os.mkfifo,
        Path.mkdir,
        lambda path: (os.mkfifo(f"{path}.pipe"), path.symlink_to(f"{path.name}.pipe")),
    ],
    "it is a link that leads out of its folder": [
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path.parent.parent / "outside"),
        lambda path: path.symlink_to("../outside"),
    ],
    "No such file": [lambda path: path.symlink_to("nothing"), lambda path: None],
    "Too many levels of symbolic links": [lambda path: path.symlink_to(path.name)],
    "it has more than 1,073,741,824 bytes": [
        lambda path: (path.touch(), os.truncate(path, reading.MOST_BYTES + 1))
    ],
}


@pytest.mark.parametrize(("said", "make"), [(k, f) for k, each in NOT_READ.items() for f in each])
def test_what_is_no_file_of_the_folder_is_not_read(said, make, tmp_path):
    path = tmp_path / "run" / "metrics.csv"
    path.parent.mkdir()
    make(path)
    for read in (read_bytes, read_json, read_table):
        with pytest.raises(UnreadableError, match=f"^{path} cannot be read: {said}") as caught:
            read(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[3]", b"\xff", b"[" * 100_000, b'{"a": 1, "digest": "0"}', b"9" * 5000]
)
def test_damaged_json_is_refused(content, tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match="cannot be read"):
        read_json(path)


def test_a_digest_tells_changes(tmp_path):
    path = tmp_path / "a.json"
    reading.write_with_digest(path, {"b": [1, 2], "a": {"c": None}})
    assert read_json(path) | {"digest": ""} == {"b": [1, 2], "a": {"c": None}, "digest": ""}
    path.write_text(path.read_text().replace("2", "3"))
    with pytest.raises(UnreadableError, match="it was changed since it was written"):
        read_json(path)


def test_a_cell_that_is_too_long_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a\n" + "x" * (csv.field_size_limit() + 1))
    with pytest.raises(UnreadableError, match="field larger than field limit"):
        read_table(path)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a\nb"),
        KeyError("a"),
        TypeError(),
        OverflowError(),
        SettingsError("a"),
        OSError(2, "a"),
    ],
)
def test_whatever_content_leads_to_is_one_line(error):
    with pytest.raises(UnreadableError) as caught, reading.reading(Path("x")):
        raise error
    lacks = "it lacks 'a'" if isinstance(error, KeyError) else ""
    assert str(caught.value).startswith(f"x cannot be read: {lacks}")
    assert "\n" not in str(caught.value)
    with pytest.raises(UnreadableError, match="inner"), reading.reading(Path("x")):
        raise UnreadableError("inner")
    with pytest.raises(MemoryError), reading.reading(Path("x")):
        raise MemoryError
