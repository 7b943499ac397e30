"""The manifest: one entry for each start of a run."""

import json
import subprocess

import pytest

from cbet_jax.runs import manifest
from cbet_jax.runs.manifest import Session


def test_each_start_has_one_entry_that_grows(tmp_path):
    path = tmp_path / "manifest.json"
    first = Session(path, ["--seeds", "2"])
    first.record(frames=10)
    first.record(frames=20)
    Session(path, []).record(frames=30)
    sessions = json.loads(path.read_text())["sessions"]
    assert [session["frames"] for session in sessions] == [20, 30]
    assert sessions[0]["command"] == "--seeds 2"


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
