"""What the command lines of all experiments share: reading them, and saying no in one line."""

import contextlib
import difflib
import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import tyro

from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.runs.directory import RunDirectoryError
from experiments.common.presets import DEFAULT, PRESETS

BAD_INPUT = 2  # exit status
INTERRUPTED = 130  # exit status


@dataclass(frozen=True)
class First:
    """The part of a command line that says where the other defaults come from."""

    preset: str | None = None
    out: Path | None = None
    resume: bool = False


@dataclass(frozen=True)
class FirstOfTask(First):
    """The same, of a command line that names one task."""

    env: str | None = None


@dataclass(frozen=True)
class FirstOfTransfer(FirstOfTask):
    """The same, of a command line that names a pre-trained run, too."""

    source: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    checkpoint: int | None = None
    seed_index: int | None = None


def first[F: First](arguments: Sequence[str], kind: type[F]) -> F:
    """Reads the fields of `kind`, and leaves the rest for later."""
    known: F
    known, _ = parse(kind, arguments, return_unknown_args=True, add_help=False)
    return known


def preset(name: str | None, presets: Mapping[str, RunSettings] = PRESETS) -> RunSettings:
    """Returns the settings of a preset (None: the default one).

    Args:
        name: of the preset.
        presets: to choose from.

    Raises:
        SettingsError: there is no such preset; the message names the nearest ones.
    """
    name = DEFAULT if name is None else name
    if name not in presets:
        near = difflib.get_close_matches(name, presets, cutoff=0)
        raise SettingsError(f"unknown preset {name!r}; nearest: {', '.join(near)}")
    return presets[name]


def parse(kind: Any, arguments: Sequence[str], **options: Any) -> Any:
    """Reads a command line into a frozen dataclass.

    Args:
        kind: the dataclass.
        arguments: the words of the command line.
        **options: passed on to `tyro.cli`.

    Raises:
        SettingsError: the command line cannot be read, or its values cannot be run.
    """
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            return tyro.cli(kind, args=list(arguments), **options)
    except SystemExit as stop:
        if not stop.code:
            raise
        raise SettingsError(_one_line(printed.getvalue())) from None


@contextlib.contextmanager
def user_errors(*others: type[Exception]) -> Iterator[None]:
    """Turns bad input into one line on stderr and exit status 2.

    Args:
        *others: exceptions that mean bad input, beside the settings' and the directory's.
    """
    bad_input: tuple[type[Exception], ...] = (SettingsError, RunDirectoryError, *others)
    try:
        yield
    except bad_input as error:
        fail(str(error), BAD_INPUT)
    except KeyboardInterrupt:
        fail("interrupted", INTERRUPTED)


def fail(message: str, status: int) -> NoReturn:
    """Ends the process with one line on stderr.

    Raises:
        SystemExit: always.
    """
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(status)


def _one_line(box: str) -> str:
    """Returns what tyro says in a box of many lines: the problem, and the nearest options."""
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
    return f"{problem}; nearest: {', '.join(near)}" if near else problem
