"""Name commands in printed lines as this process was started."""

import os
import shlex
import shutil
import sys
from pathlib import Path

from experiments.common import commands


def command_line(module: str, *words: object) -> str:
    """Return a line to paste that runs a command such as `experiments.watch` with these words."""
    if _script() and module in commands.SHORT:
        return shlex.join([*_script(), commands.SHORT[module], *map(str, words)])
    return shlex.join([*_python(), "-m", module, *map(str, words)])


def front(*words: str) -> str:
    """Return a line to paste that runs the front of all commands."""
    return shlex.join([*(_script() or [*_python(), "-m", "experiments"]), *words])


def _script() -> list[str]:
    """Return the words that start the console script, [] if it did not start this process."""
    typed = sys.orig_argv[1] if len(sys.orig_argv) > 1 else ""
    if Path(typed).name != commands.PROGRAM:
        return []
    return _through_uv(commands.PROGRAM) or [typed if _uv() else _shortest(typed)]


def _python() -> list[str]:
    """Return the words that start this Python."""
    typed = sys.orig_argv[0] if sys.orig_argv else ""
    known = shutil.which(typed) and (os.sep in typed or not _uv())
    return _through_uv("python") or [typed if known else sys.executable]


def _through_uv(program: str) -> list[str]:
    """Return the words that start a program as `uv run` did here, [] where it would not."""
    uv, here = _uv(), Path.cwd()
    projects = (path for path in (here, *here.parents) if (path / "pyproject.toml").is_file())
    root = next(projects, None)
    if not uv or root is None:
        return []
    environment = root / os.environ.get("UV_PROJECT_ENVIRONMENT", ".venv")
    if environment.resolve() != Path(sys.prefix).resolve():
        return []
    return [_shortest(uv), "run", program]


def _uv() -> str | None:
    """Return the program uv, if it started this process: PATH then differs from the shell's."""
    return os.environ.get("UV") if "UV_RUN_RECURSION_DEPTH" in os.environ else None


def _shortest(program: str) -> str:
    """Return a program's name if PATH leads to it, else its path."""
    found = shutil.which(Path(program).name)
    return Path(program).name if found and os.path.samefile(found, program) else program
