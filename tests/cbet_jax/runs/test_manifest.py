"""The manifest: one entry for each start of a run."""

import json
import subprocess
from contextlib import contextmanager, nullcontext

import jax
import pytest

from cbet_jax.runs import manifest
from cbet_jax.runs.directory import RunDirectoryError
from cbet_jax.runs.manifest import Session


def test_each_start_has_one_entry_that_grows(tmp_path):
    path = tmp_path / "manifest.json"
    first = Session(path, ["--seeds", "2"])
    first.record(path, frames=10)
    first.record(path, frames=20)
    Session(path, []).record(path, frames=30)
    sessions = json.loads(path.read_text())["sessions"]
    assert [session["frames"] for session in sessions] == [20, 30]
    assert sessions[0]["command"] == "--seeds 2"


@pytest.mark.parametrize(
    ("variable", "before", "now", "refused"),
    [
        ("JAX_THREEFRY_PARTITIONABLE", True, False, "THREEFRY_PARTITIONABLE=True, not 'False'"),
        ("JAX_DEFAULT_MATMUL_PRECISION", None, "highest", "PRECISION=None, not 'highest'"),
        ("XLA_FLAGS", "", "--xla_cpu_enable_fast_math=true", "XLA_FLAGS=, not '--xla_cpu_enable_f"),
        ("XLA_FLAGS", "--xla_a=1 --xla_b=2", "--xla_b=2  --xla_a=1 --xla_dump_to=x", ""),
    ],
)
def test_a_run_is_not_continued_where_numbers_would_differ(
    variable, before, now, refused, tmp_path, monkeypatch
):
    def begin(value) -> Session:
        if variable == "XLA_FLAGS":
            monkeypatch.setenv(variable, value)
            return Session(tmp_path / "manifest.json", [])
        with set_to(variable.lower(), value):
            return Session(tmp_path / "manifest.json", [])

    begin(before).record(tmp_path / "manifest.json")
    begin(before).refuse_other_surroundings()
    with pytest.raises(RunDirectoryError, match=refused) if refused else nullcontext():
        begin(now).refuse_other_surroundings()


@contextmanager
def set_to(name, value):
    """Give a setting of JAX another value while the block runs."""
    original = getattr(jax.config, name)
    jax.config.update(name, value)
    yield
    jax.config.update(name, original)


@pytest.mark.parametrize(("folder", "is_own"), [("", True), (".venv/lib/site-packages", False)])
def test_the_commit_is_that_of_the_packages_own_repository(folder, is_own, tmp_path, monkeypatch):
    (tmp_path / folder / "cbet_jax" / "runs").mkdir(parents=True)
    author = ("-c", "user.name=A", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), (*author, "commit", "-q", "--allow-empty", "-m", "one")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    place = tmp_path / folder / "cbet_jax" / "runs" / "manifest.py"
    monkeypatch.setattr(manifest, "__file__", str(place))
    commit = manifest.describe([])["commit"]
    assert (commit is not None and len(commit) == 40) if is_own else commit is None
