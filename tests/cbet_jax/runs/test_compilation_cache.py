"""Compiled programs are kept in the user's folder, if it is the user's alone."""

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from cbet_jax.runs import compilation_cache

HIT = "/jax/compilation_cache/cache_hits"
OPTIONS = {
    "jax_compilation_cache_dir": None,
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_enable_xla_caches": "none",
}


@pytest.fixture(autouse=True)
def _no_folder_is_chosen():
    chosen = {name: getattr(jax.config, name) for name in OPTIONS}
    configure(OPTIONS)
    yield
    configure(chosen)


def configure(options) -> None:
    for name, value in options.items():
        jax.config.update(name, value)
    reset_cache()


@pytest.fixture(autouse=True)
def caches(monkeypatch, tmp_path) -> Path:
    """Where users keep caches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches"


def compiled() -> list[str]:
    """Compile and call a program, and return what was said."""
    said: list[str] = []
    numbers = jnp.arange(3)
    compilation_cache.use(said.append)
    program = jax.jit(lambda x: x * 2).lower(numbers).compile()
    assert program(numbers).tolist() == [0, 2, 4]
    return said


def test_what_was_compiled_is_read_from_a_folder_of_the_users_alone(caches):
    hits: list[str] = []
    listener = lambda event, **_: hits.append(event) if event == HIT else None  # noqa: E731
    jax.monitoring.register_event_listener(listener)
    try:
        assert compiled() == []
        assert not hits
        assert compiled() == []
        assert len(hits) == 1
    finally:
        jax.monitoring.unregister_event_listener(listener)
    (folder,) = (caches / "cbet-jax").iterdir()
    assert jax.__version__ in folder.name
    assert folder.stat().st_mode & 0o777 == 0o700
    assert any("cache" in path.name for path in folder.iterdir())


@pytest.mark.parametrize("owner", ["others can write", "another user"])
def test_a_folder_of_others_is_not_used(owner, caches, monkeypatch):
    compiled()
    (folder,) = (caches / "cbet-jax").iterdir()
    configure(OPTIONS)
    if owner == "another user":
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    else:
        folder.chmod(0o777)
    (line,) = compiled()
    assert f"others can write to {folder}" in line
    assert jax.config.jax_compilation_cache_dir is None


def test_a_folder_that_cannot_be_made_stops_nothing(caches):
    caches.touch()
    (line,) = compiled()
    assert "compiled programs are not kept" in line


def test_the_users_own_choice_is_used_instead(caches, tmp_path):
    configure({"jax_compilation_cache_dir": str(tmp_path / "users")})
    assert compiled() == []
    assert not caches.exists()
    assert list((tmp_path / "users").iterdir())
