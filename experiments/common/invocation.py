"""How this process was started, and so how commands are named in what it prints."""

import os
import shlex
import shutil
import sys
from pathlib import Path

from experiments.common import commands


def command_line(module: str, *words: object) -> str:
    """Return the line that runs a module, to be pasted where this process was started.

    Args:
        module: such as `experiments.watch`.
        *words: of its command line.
    """
    named = [commands.SHORT[module]] if module in commands.SHORT and _script() else []
    start = [*_script(), *named] if named else [*_python(), "-m", module]
    return shlex.join([*start, *map(str, words)])


def front(*words: str) -> str:
    """Return the line that runs the front of all commands, to be pasted."""
    start = _script() or [*_python(), "-m", "experiments"]
    return shlex.join([*start, *words])


def _script() -> list[str]:
    """Return the words that start the console script, none if this process is not it."""
    typed = sys.orig_argv[1] if len(sys.orig_argv) > 1 else ""
    if Path(typed).name != commands.PROGRAM:
        return []
    uv = _uv()
    if uv and _is_uv_project_here():
        return [_shortest(uv), "run", commands.PROGRAM]
    # uv run changes PATH for its children only: there a name is not what the user's shell knows.
    return [typed if uv else _shortest(typed)]


def _uv() -> str | None:
    """Return the program uv, if it has started this process."""
    return os.environ.get("UV") if "UV_RUN_RECURSION_DEPTH" in os.environ else None


def _python() -> list[str]:
    """Return the words that start this Python: through uv, or as the user typed them."""
    uv = _uv()
    if uv and _is_uv_project_here():
        return [_shortest(uv), "run", "python"]
    typed = sys.orig_argv[0] if sys.orig_argv else ""
    # uv run changes PATH for its children only: there a name is not what the user's shell knows.
    known = shutil.which(typed) and (os.sep in typed or not uv)
    return [typed if known else sys.executable]


def _is_uv_project_here() -> bool:
    """Return whether `uv run` in the working directory would use this environment."""
    here = Path.cwd()
    projects = (path for path in (here, *here.parents) if (path / "pyproject.toml").is_file())
    root = next(projects, None)
    if root is None:
        return False
    environment = root / os.environ.get("UV_PROJECT_ENVIRONMENT", ".venv")
    return environment.resolve() == Path(sys.prefix).resolve()


def _shortest(program: str) -> str:
    """Return the shortest way to name a program: its name, or its path from here or from /."""
    path = Path(program)
    named = shutil.which(path.name)
    if named and os.path.samefile(named, program):
        return path.name
    if not path.is_relative_to(Path.cwd()):
        return program
    below = str(path.relative_to(Path.cwd()))
    return below if os.sep in below else os.path.join(os.curdir, below)
