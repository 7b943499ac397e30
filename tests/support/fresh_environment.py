"""A fresh environment of Python, into which uv installs what a test names."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UV = shutil.which("uv") or str(ROOT / ".uv" / "bin" / "uv")
TIMEOUT = 3600  # seconds of one command
# Neither this process's settings nor the versions that the repository pins. Nor its cache of
# compiled programs: jax 0.6 reads them back wrong on a CPU.
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "XLA_FLAGS", "VIRTUAL_ENV")
    and not name.startswith("JAX_")
} | {"UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never"}


def output(*command: str | Path, folder: Path) -> str:
    """Run a command in a folder, and return what it prints; it must succeed."""
    options = {"capture_output": True, "text": True, "check": False, "timeout": TIMEOUT}
    ended = subprocess.run([*map(str, command)], cwd=folder, env=CLEAN, **options)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-4000:]
    return ended.stdout + ended.stderr


def environment(folder: Path, version: str, *packages: str | Path) -> Path:
    """Return the folder of programs of an environment with packages, where Python is found."""
    try:
        found = subprocess.run([UV, "python", "find", version], env=CLEAN, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs uv")
    if found.returncode:
        pytest.skip(f"Python {version} is not installed")
    output(UV, "venv", "--python", version, folder / "env", folder=folder)
    programs = folder / "env" / "bin"
    output(UV, "pip", "install", "--python", programs / "python", *packages, folder=folder)
    return programs
