"""Name commands in printed lines as this process was started."""

import contextlib
import os
import re
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
    extended = _extended()
    if environment.resolve() != (extended or Path(sys.prefix).resolve()):
        return []
    added = [word for each in _added(extended) for word in ("--with", each)] if extended else []
    return [_shortest(uv), "run", *added, program]


def _extended() -> Path | None:
    """Return the environment that this process's extends, where that is one of `uv run --with`."""
    with contextlib.suppress(OSError):
        for line in Path(sys.prefix, "pyvenv.cfg").read_text().splitlines():
            name, _, value = line.partition(" = ")
            if name == "extends-environment":
                return Path(value).resolve()
    return None


def _added(extended: Path) -> list[str]:
    """Return the packages that are not in the extended environment, without what these need."""
    from importlib import metadata  # imported here: few processes need it

    packages = (path for path in sys.path if Path(path).name == "site-packages")
    places = [path for path in packages if not Path(path).resolve().is_relative_to(extended)]
    found = {_name(each.name): each for each in metadata.distributions(path=places)}
    needed = {_name(line) for each in found.values() for line in each.requires or ()}
    return [f"{name}=={found[name].version}" for name in sorted(found.keys() - needed)]


def _name(requirement: str) -> str:
    """Return the normalized name of a package, with which a requirement begins."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def _uv() -> str | None:
    """Return the program uv, if it started this process: PATH then differs from the shell's."""
    return os.environ.get("UV") if "UV_RUN_RECURSION_DEPTH" in os.environ else None


def _shortest(program: str) -> str:
    """Return a program's name if PATH leads to it, else its path."""
    found = shutil.which(Path(program).name)
    return Path(program).name if found and os.path.samefile(found, program) else program
