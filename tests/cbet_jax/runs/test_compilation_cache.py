"""Compiled programs are kept in the user's folder; what goes wrong with it costs only time."""

import os
import resource
import shutil
import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from cbet_jax.analysis import figures
from cbet_jax.runs.compilation_cache import kept, users_folder
from cbet_jax.runs.directory import RunDirectory
from experiments import minigrid_pretrain
from tests.support.fake_program import fake_program
from tests.support.tiny import ARGUMENTS

HIT = "/jax/compilation_cache/cache_hits"


@pytest.fixture(autouse=True)
def _every_program_and_no_folder_of_the_users():
    choose = {"jax_compilation_cache_dir": None, "jax_persistent_cache_min_compile_time_secs": 0.0}
    chosen = {name: getattr(jax.config, name) for name in choose}
    configure(choose)
    yield
    configure(chosen)


def configure(choose) -> None:
    for name, value in choose.items():
        jax.config.update(name, value)
    reset_cache()


@pytest.fixture
def hits():
    """How many programs were read."""
    found = []

    def listener(event, **_):
        if event == HIT:
            found.append(event)

    jax.monitoring.register_event_listener(listener)
    yield found
    jax.monitoring.unregister_event_listener(listener)


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path) -> Path:
    """The user's folder of compiled programs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return users_folder()


def programs(folder: Path) -> list[Path]:
    return sorted(folder.glob("*-cache"))


def compiled() -> list[str]:
    """Compile and call a program, and return what was said."""
    said: list[str] = []
    numbers = jnp.arange(3)
    with kept(said.append):
        program = jax.jit(lambda x: x * 2).lower(numbers).compile()
    assert program(numbers).tolist() == [0, 2, 4]
    return said


def test_what_was_compiled_is_read(folder, hits):
    assert compiled() == []
    assert len(programs(folder)) == 1
    assert not hits
    assert compiled() == []
    assert len(hits) == 1
    assert jax.config.jax_compilation_cache_dir is None


def test_the_folder_is_the_users_alone(folder):
    assert folder.parent.name == "cbet-jax"
    assert jax.__version__ in folder.name
    compiled()
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("chosen", [False, True])
def test_a_folder_that_others_can_write_is_refused(folder, hits, chosen):
    compiled()
    folder.chmod(0o777)
    if chosen:
        configure({"jax_compilation_cache_dir": str(folder)})
    (line,) = compiled()
    assert f"other users can write to {folder}" in line
    assert not hits


def test_a_folder_of_another_user_is_refused(folder, hits, monkeypatch):
    compiled()
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    (line,) = compiled()
    assert f"{folder} belongs to another user" in line
    assert not hits


def test_a_file_that_was_not_written_to_its_end_is_replaced(folder, hits):
    compiled()
    (path,) = programs(folder)
    path.write_bytes(path.read_bytes()[:-100])
    (line,) = compiled()
    assert "cannot be read" in line
    assert programs(folder) == []
    assert compiled() == []
    assert compiled() == []
    assert len(hits) == 1


def test_a_folder_that_cannot_be_made_stops_nothing(tmp_path):
    (tmp_path / "caches").touch()
    (line,) = compiled()
    assert "not kept" in line


def test_a_full_disk_stops_nothing(folder, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it would be cut off
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        (line,) = compiled()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "not kept" in line
    assert "\n" not in line
    assert programs(folder) == []


def test_the_users_own_choice_is_used_instead(folder, tmp_path):
    configure({"jax_compilation_cache_dir": str(tmp_path / "users")})
    assert compiled() == []
    assert not folder.exists()
    assert programs(tmp_path / "users")


def test_other_warnings_are_heard():
    with pytest.warns(UserWarning, match="something else"), kept(print):
        warnings.warn("something else", stacklevel=1)


@pytest.fixture
def stand_in(monkeypatch) -> None:
    """A program that compiles at once; experiments/benchmarks has what a real one takes."""
    monkeypatch.setattr(minigrid_pretrain, "build", fake_program)
    monkeypatch.setattr(figures, "draw_learning_curves", lambda *_: [])
    jax.clear_caches()  # other tests may have compiled it


def test_a_run_that_goes_on_reads_its_program(stand_in, folder, tmp_path, hits):
    root = tmp_path / "run"
    rarely = ("--checkpoint-seconds", "1000")
    minigrid_pretrain.main([*ARGUMENTS, "--out", str(root), *rarely])
    found = programs(folder)
    assert any("advance" in path.name for path in found)
    for path in RunDirectory(root).checkpoints.iterdir():
        shutil.rmtree(path)
    jax.clear_caches()
    before = len(hits)
    minigrid_pretrain.main(["--out", str(root), "--resume", *rarely])
    assert programs(folder) == found
    assert len(hits) >= before + len(found)


def test_a_runs_own_folder_is_not_read(stand_in, folder, tmp_path, hits):
    """It may come from somebody else, and holds machine code."""
    minigrid_pretrain.main([*ARGUMENTS, "--out", str(tmp_path / "run")])
    shutil.move(folder, tmp_path / "run" / "cache")
    assert programs(tmp_path / "run" / "cache")
    jax.clear_caches()
    hits.clear()
    for path in RunDirectory(tmp_path / "run").checkpoints.iterdir():
        shutil.rmtree(path)
    minigrid_pretrain.main(["--out", str(tmp_path / "run"), "--resume"])
    assert not hits
