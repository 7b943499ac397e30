"""Files are whole, in their own folder, and leave nothing beside them."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from unittest.mock import Mock

import pytest

from cbet_jax.runs.atomic_write import (
    check_room,
    creating,
    delete_left_over,
    open_own,
    replacing,
    set_aside,
)


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("writing", [replacing, creating])
def test_what_fails_leaves_nothing(writing, tmp_path):
    with pytest.raises(OSError, match="directory"), writing(tmp_path / "a[1].csv") as temporary:
        temporary.joinpath("file").write_text("half")
    assert names(tmp_path) == []


def test_a_full_disk_is_told_with_the_place(tmp_path, monkeypatch):
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match="No space") as caught, replacing(tmp_path / "a.csv"):
        raise full  # as `write` does, without a name
    assert caught.value.filename == str(tmp_path / "a.csv")
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(errno.ENOSPC, "No space")))
    with pytest.raises(OSError, match="No space") as caught:
        check_room(tmp_path / "run")
    assert caught.value.filename == str(tmp_path / "run")


@pytest.mark.parametrize("writing", [replacing, creating])
def test_what_a_killed_process_left_is_deleted(writing, tmp_path):
    program = (
        "import os, sys; from pathlib import Path; from cbet_jax.runs.atomic_write import *\n"
        f"with {writing.__name__}(Path(sys.argv[1]) / 'a*.csv') as t: os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 1
    with writing(tmp_path / "a*.csv") as temporary:
        temporary.write_text("whole")
    assert names(tmp_path) == ["a*.csv"]


def test_what_another_process_is_writing_stays(tmp_path):
    with replacing(tmp_path / "a.csv") as one, replacing(tmp_path / "a.csv") as other:
        one.write_text("one")
        other.write_text("other")
    assert (tmp_path / "a.csv").read_text() == "one"


def test_a_file_deleted_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    def lock(opened, how):
        for left in tmp_path.iterdir() if how == fcntl.LOCK_EX else ():
            left.unlink()
        monkeypatch.undo()

    monkeypatch.setattr(fcntl, "flock", lock)
    with replacing(tmp_path / "a") as temporary:
        temporary.write_text("whole")
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "whole"


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError), creating(tmp_path / "a") as temporary:
        temporary.write_text("b")
    assert names(tmp_path) == ["a"]


def test_a_link_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "a").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic"):
        open_own(tmp_path / "a")
    with replacing(tmp_path / "a") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "a").is_symlink()


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no ordinary file"):
        open_own(tmp_path / "pipe")


def test_room_is_tried_and_left_as_it_was(tmp_path):
    check_room(tmp_path / "new" / "folder")
    assert names(tmp_path / "new" / "folder") == []
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        check_room(tmp_path / "file" / "folder")


FOREIGN = (
    *(".draft.tmp", ".draft.tmp.md", ".draft.0a.tmp.md", ".draft.0A1B2C3D.tmp", ".0a1b2c3d.tmp"),
    *("draft.0a1b2c3d.tmp.md", ".draft.0a1b2c3d.tmpl", ".a.csv.tmp", ".a.my notes.tmp.csv"),
)


def test_only_what_killed_processes_left_is_deleted_and_only_in_folders_of_ours(tmp_path):
    left = [tmp_path / name for name in (".a.0a1b2c3d.tmp", ".evaluation.0a1b2c3d.tmp.png")]
    for path in (*left, *(tmp_path / name for name in FOREIGN)):
        path.write_text("half")
    check_room(tmp_path)  # which may be anybody's folder
    with replacing(tmp_path / "a.csv") as temporary:
        assert all(path.exists() for path in left)
        delete_left_over(tmp_path)
        assert temporary.exists()  # it is being written
    assert names(tmp_path) == sorted([*FOREIGN, "a.csv"])


def test_what_is_damaged_gets_a_name_that_is_free(tmp_path):
    (tmp_path / "a.damaged-1").symlink_to("nowhere")
    (tmp_path / "a").touch()
    assert set_aside(tmp_path / "a").name == "a.damaged-2"
