"""Where results go is known to be writable before anything is played."""

from pathlib import Path

import pytest

from experiments import minigrid_evaluate
from experiments.common.outputs import (
    distinct_names,
    new_in_runs,
    results_folder,
    unused,
    write_new,
)
from experiments.common.refusals import refusal
from experiments.evaluation import gridworlds
from tests.support.refusal import refused
from tests.support.saved_runs import save_run


def test_another_folder_is_offered(tmp_path):
    (tmp_path / "run").touch()  # as good as a folder that cannot be written to
    with pytest.raises(OSError, match="exists") as caught:
        results_folder(None, tmp_path / "run")
    found = refusal(caught.value)
    assert found is not None
    assert found.line.endswith("name another folder with --out")
    assert results_folder(tmp_path / "out", tmp_path / "run") == tmp_path / "out"
    assert list((tmp_path / "out").iterdir()) == []


def test_an_evaluation_that_cannot_be_written_is_not_played(tmp_path, capsys, monkeypatch):
    run = save_run(tmp_path / "run").root
    monkeypatch.setattr(gridworlds, "play", None)
    arguments = [str(run), "--out", "/proc/nowhere", "--envs", "LavaGapS5"]
    error = refused(minigrid_evaluate.main, arguments, capsys, status=3)
    assert "/proc/nowhere" in error


def test_runs_of_one_name_are_told_apart_by_the_folders_above(tmp_path, capsys):
    paths = [tmp_path / setup / method for setup in "AB" for method in ("cbet", "count")]
    assert distinct_names(paths[:2]) == ["cbet", "count"]
    assert distinct_names(paths) == ["A/cbet", "A/count", "B/cbet", "B/count"]
    assert distinct_names([Path("/cbet"), Path("/A/cbet")]) == ["cbet", "A/cbet"]
    assert distinct_names([Path("/\x1b[31mx\udcff")]) == ["\\x1b[31mx\\xdcff"]
    folders = minigrid_evaluate.outs_of([paths[0], paths[2]], tmp_path / "out")
    assert folders == [tmp_path / "out/A/cbet", tmp_path / "out/B/cbet"]
    twice = [str(save_run(tmp_path / "run").root)] * 2
    assert "is given twice" in refused(minigrid_evaluate.main, twice, capsys)


def test_a_name_is_free_if_those_of_the_pictures_are_and_no_link_has_it(tmp_path):
    for name in ("a-2.png", "a-3-maps.png"):
        (tmp_path / name).touch()
    (tmp_path / "a.csv").symlink_to(tmp_path / "nowhere")
    assert unused(tmp_path / "a.csv", ".png", "-maps.png") == tmp_path / "a-4.csv"


def test_folders_of_one_second_have_names_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = [new_in_runs("cbet-smoke") for _ in range(3)]
    assert len(set(made)) == 3
    assert all(path.is_dir() and path.name.startswith("cbet-smoke-") for path in made)


def test_who_comes_second_takes_the_next_name(tmp_path):
    """Two processes may have found the same name free."""

    def write(path):
        if path.name == "a.csv":  # the other one is faster
            path.write_text("theirs")
        path.open("x").write("ours")

    assert write_new(tmp_path / "a.csv", write) == tmp_path / "a-2.csv"
    assert (tmp_path / "a.csv").read_text() == "theirs"


def test_a_folder_that_is_a_link_to_nothing_is_told(tmp_path, monkeypatch):
    """As where `runs` leads to a disk that is not there."""
    monkeypatch.chdir(tmp_path)
    Path("runs").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError, match="runs"):
        new_in_runs("cbet-smoke")
