"""What all command lines share: reading them, printing them, and refusing bad input in one line."""

import contextlib
import inspect
import io
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import tyro

from cbet_jax.config import SettingsError
from cbet_jax.runs.directory import RunDirectoryError
from cbet_jax.setting_types import static_settings

BAD_INPUT = 2  # exit status
INTERRUPTED = 130  # exit status


@dataclass(frozen=True)
class FirstWords:
    """The words of a command line that say where the defaults of all others come from."""

    preset: str | None = None
    out: Path | None = None
    resume: bool = False
    env: str | None = None  # whose task is learnt
    source: Annotated[Path | None, tyro.conf.arg(name="from")] = None  # the pre-trained run
    seed_index: int | None = None  # of the pre-trained run


def first_words(arguments: Sequence[str]) -> FirstWords:
    """Read the words that decide the defaults, and leave the rest for later."""
    known: FirstWords
    known, _ = parse(FirstWords, arguments, return_unknown_args=True, add_help=False)
    return known


def parse(kind: Any, arguments: Sequence[str], module: str = "", **options: Any) -> Any:
    """Read a command line into a frozen dataclass.

    Args:
        kind: the dataclass.
        arguments: the words of the command line.
        module: that was started, for the usage line of `--help`.
        **options: passed on to `tyro.cli`.

    Raises:
        SettingsError: the command line cannot be read, or its values cannot be run.
    """
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            prog = command_line(module) if module else None
            description = _description(kind)
            return tyro.cli(
                kind, args=list(arguments), prog=prog, description=description, **options
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise SettingsError(_one_line(printed.getvalue())) from None


def command_line(module: str, *words: object) -> str:
    """Return the line that runs a module, to be pasted where this process was started.

    Args:
        module: such as `experiments.watch`.
        *words: of its command line.
    """
    return shlex.join([*_python(), "-m", module, *map(str, words)])


def _python() -> list[str]:
    """Return the words that start this Python: through uv, or as the user typed them."""
    uv = os.environ.get("UV") if "UV_RUN_RECURSION_DEPTH" in os.environ else None
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


@contextlib.contextmanager
def user_errors(*others: type[Exception]) -> Iterator[None]:
    """Turn bad input into one line on stderr and exit status 2.

    Args:
        *others: exceptions that mean bad input, besides those of settings and directories.
    """
    bad_input: tuple[type[Exception], ...] = (SettingsError, RunDirectoryError, *others)
    try:
        yield
    except bad_input as error:
        fail(str(error), BAD_INPUT)
    except KeyboardInterrupt:
        fail("interrupted", INTERRUPTED)


def fail(message: str, status: int) -> NoReturn:
    """End the process with one line on stderr.

    Raises:
        SystemExit: always.
    """
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(status)


def _description(kind: type) -> str:
    """Return the beginning of a command's help: what it does, and which settings are static."""
    what = inspect.getdoc(kind) or ""
    names = (name.removeprefix("train.").replace("_", "-") for name in static_settings(kind))
    static = " ".join(f"--{name}" for name in names)
    if not static:
        return what
    return (
        f"{what}\n\nEach value of these compiles another program: {static}. Without "
        "--counts.capacity so may --frames, --counts.reset-probability and --counts.random-resets: "
        "the size of count tables depends on them."
    )


def _one_line(box: str) -> str:
    """Return what tyro says in a box of many lines: the problem, and the nearest options."""
    lines = [line.strip("│ ") for line in re.sub(r"\x1b\[[0-9;]*m", "", box).splitlines()]
    sections: list[list[str]] = [[]]
    for line in lines:
        if re.fullmatch("[-─╭╮╰╯]+", line):
            sections.append([])
        elif line and not line.startswith("╭"):
            sections[-1].append(line)
    # Where the terminal cannot draw a box, its title is a section of its own.
    title = 0 if "╭" in box else 1
    problem, *rest = [" ".join(section) for section in sections if section][title:]
    near = re.findall(r"--[\w.-]+", rest[0]) if "Perhaps you meant" in " ".join(rest) else []
    return f"{problem}; did you mean {' or '.join(near)}?" if near else problem
