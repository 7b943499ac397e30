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
