"""Printed lines can be pasted, whatever a process was started with."""

import shlex
import subprocess
import sys

import pytest

from experiments.common import invocation


def test_a_printed_line_can_be_pasted(tmp_path):
    """Whatever this process was started with, and whatever a directory is called."""
    folder = tmp_path / "my runs; [bold]"
    folder.mkdir()
    line = invocation.command_line("zipfile", "--create", folder / "a.zip", __file__)
    ended = subprocess.run(line, shell=True, check=False, timeout=60)
    assert ended.returncode == 0
    assert (folder / "a.zip").is_file()


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Lets this process look as if it had been started in a folder, by one of several ways."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for path in (project / ".venv" / "bin", project / "sub", elsewhere):
        path.mkdir(parents=True)
    (project / "pyproject.toml").touch()
    for name in (".venv/bin/python", "uv"):
        (project / name).touch(mode=0o755)
    monkeypatch.delenv("UV_PROJECT_ENVIRONMENT", raising=False)
    monkeypatch.setattr(sys, "prefix", str(project / ".venv"))
    monkeypatch.setattr(sys, "executable", str(project / ".venv/bin/python"))

    def start(folder: str, typed: str, uv: bool, path: str) -> list[str]:
        monkeypatch.chdir(tmp_path / folder)
        monkeypatch.setattr(sys, "orig_argv", [typed.replace("{}", str(project)), "-m"])
        monkeypatch.setenv("PATH", path.replace("{}", str(project)))
        for name, value in {"UV": str(project / "uv"), "UV_RUN_RECURSION_DEPTH": "1"}.items():
            monkeypatch.setenv(name, value) if uv else monkeypatch.delenv(name, raising=False)
        words = shlex.split(invocation.command_line("experiments.watch", "runs/a b"))
        assert words[-3:] == ["-m", "experiments.watch", "runs/a b"]
        return [word.replace(str(project), "PROJECT") for word in words[:-3]]

    return start


VENV = "{}/.venv/bin"  # which uv run puts on the PATH of what it starts


@pytest.mark.parametrize(
    ("how", "line"),
    [
        (("project", VENV + "/python", True, VENV + ":{}"), "uv run python"),
        (("project", VENV + "/python", True, VENV), "PROJECT/uv run python"),
        (("project/sub", VENV + "/python", True, VENV + ":{}"), "uv run python"),
        (("project", "python", False, VENV), "python"),
        (("project", ".venv/bin/python", False, "/bin"), ".venv/bin/python"),
        (("elsewhere", "python", False, "/nowhere"), "PROJECT/.venv/bin/python"),
    ],
)
def test_a_printed_line_starts_as_the_user_did(how, line, started):
    assert " ".join(started(*how)) == line


def test_packages_that_uv_adds_to_the_project_are_named(started, tmp_path, monkeypatch):
    """By `uv run --with`: its environment ends with its process."""
    project, added = tmp_path / "project" / ".venv", tmp_path / "builds"
    site = added / "lib" / "site-packages"
    for name, needs in {"An_env": "Needed.one>=2; python_version > '3'", "needed-one": ""}.items():
        about = site / f"{name}-1.5.dist-info" / "METADATA"
        about.parent.mkdir(parents=True)
        requires = f"Requires-Dist: {needs}\n" if needs else ""
        about.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n{requires}")
    (added / "pyvenv.cfg").write_text(f"uv = 0.9\nextends-environment = {project}\n")
    monkeypatch.setattr(sys, "prefix", str(added))
    monkeypatch.setattr(sys, "path", [str(site), str(project / "site-packages")])
    words = started("project", VENV + "/python", True, VENV + ":{}")
    assert " ".join(words) == "uv run --with an-env==1.5 python"
