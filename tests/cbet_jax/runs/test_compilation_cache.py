"""Compiled programs are kept in a folder; what goes wrong with it costs only time."""

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
from cbet_jax.runs.compilation_cache import kept_in
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


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("*-cache"))


def compiled(folder: Path) -> list[str]:
    """Compile and call a program, and return what was said."""
    said: list[str] = []
    numbers = jnp.arange(3)
    with kept_in(folder, said.append):
        program = jax.jit(lambda x: x * 2).lower(numbers).compile()
    assert program(numbers).tolist() == [0, 2, 4]
    return said


def test_what_was_compiled_is_read(tmp_path, hits):
    folder = tmp_path / "cache"
    assert compiled(folder) == []
    assert len(kept(folder)) == 1
    assert not hits
    assert compiled(folder) == []
    assert len(hits) == 1
    assert jax.config.jax_compilation_cache_dir is None


def test_a_file_that_was_not_written_to_its_end_is_replaced(tmp_path, hits):
    compiled(tmp_path)
    (path,) = kept(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    (line,) = compiled(tmp_path)
    assert "cannot be read" in line
    assert kept(tmp_path) == []
    assert compiled(tmp_path) == []
    assert compiled(tmp_path) == []
    assert len(hits) == 1


def test_a_folder_that_cannot_be_made_stops_nothing(tmp_path):
    (tmp_path / "file").touch()
    (line,) = compiled(tmp_path / "file" / "cache")
    assert "not kept" in line


def test_a_full_disk_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it would be cut off
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        (line,) = compiled(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "not kept" in line
    assert "\n" not in line
    assert kept(tmp_path) == []


def test_the_users_own_folder_is_used_instead(tmp_path):
    configure({"jax_compilation_cache_dir": str(tmp_path / "users")})
    assert compiled(tmp_path / "cache") == []
    assert not (tmp_path / "cache").exists()
    assert kept(tmp_path / "users")


def test_other_warnings_are_heard(tmp_path):
    with pytest.warns(UserWarning, match="something else"), kept_in(tmp_path, print):
        warnings.warn("something else", stacklevel=1)


def test_a_run_that_goes_on_reads_its_program(tmp_path, hits, monkeypatch):
    """The stand-in compiles at once; experiments/benchmarks has what a real one takes."""
    monkeypatch.setattr(minigrid_pretrain, "build", fake_program)
    cache = RunDirectory(tmp_path).cache
    monkeypatch.setattr(figures, "draw_learning_curves", lambda *_: [])
    rarely = ("--checkpoint-seconds", "1000")
    minigrid_pretrain.main([*ARGUMENTS, "--out", str(tmp_path), *rarely])
    programs = kept(cache)
    assert any("advance" in path.name for path in programs)
    for path in RunDirectory(tmp_path).checkpoints.iterdir():
        shutil.rmtree(path)
    jax.clear_caches()
    before = len(hits)
    minigrid_pretrain.main(["--out", str(tmp_path), "--resume", *rarely])
    assert kept(cache) == programs
    assert len(hits) >= before + len(programs)
