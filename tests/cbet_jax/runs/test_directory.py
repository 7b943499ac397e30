"""The directory of a run: what is written there, and what is deleted."""

from dataclasses import replace

import pytest

from cbet_jax.config import RunSettings
from cbet_jax.runs import directory as directories
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError, create_with_record, path_at


def test_a_run_that_has_not_begun_is_discarded_with_its_copies_of_code(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    directory.create(RunSettings())
    assert repr(directory) == f"RunDirectory('{tmp_path}/run')"
    directory.keep_code(b"method", [b"world", b"other world"])
    assert len(list(directory.root.iterdir())) == 4
    directory.discard()
    assert not directory.root.exists()


def test_what_the_user_has_put_there_is_not_discarded(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.create(RunSettings())
    mine = [tmp_path / name for name in ("worldly.py", "world-of-mine.py", "checkpoints/7/notes")]
    for path in (*mine, path_at(directory.checkpoints, 80) / "state"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    directory.discard()
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(mine)


def test_a_file_that_holds_several_worlds_is_kept_once(tmp_path):
    RunDirectory(tmp_path).keep_code(None, [b"world", b"world", b"other world"])
    copies = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert copies == {"world.py": b"world", "world-2.py": b"other world"}


def test_a_run_is_as_far_as_its_newest_checkpoint_or_else_its_newest_policies(tmp_path):
    directory = RunDirectory(tmp_path)
    for folder, frames, wanted in (
        *((directory.policies, 40, 40), (directory.policies, 60, 60)),
        *((directory.checkpoints, 30, 30), (directory.checkpoints, 80, 80)),
    ):
        path_at(folder, frames).mkdir(parents=True)
        assert directory.saved_frames() == wanted


@pytest.mark.parametrize("kind", ["run", "study"])
def test_of_two_that_begin_at_once_the_first_has_the_directory(kind, tmp_path, monkeypatch):
    """However slow the disk: the other one has found it empty, and is refused."""
    check_room, record = directories.check_room, tmp_path / "config.json"

    def slow(folder):
        monkeypatch.setattr(directories, "check_room", check_room)
        begin(1)
        check_room(folder)

    def begin(seed):
        if kind == "run":
            RunDirectory(tmp_path).create(replace(RunSettings(), first_seed=seed))
        else:
            create_with_record(record, kind, {"seed": seed})

    monkeypatch.setattr(directories, "check_room", slow)
    with pytest.raises(RunDirectoryError, match=f"already holds another {kind}"):
        begin(2)
    assert '"first_seed": 1' in record.read_text() or '"seed": 1' in record.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
