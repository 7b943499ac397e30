"""What all command lines share: reading them, and refusing bad input in one line."""

import contextlib
import inspect
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import tyro
from rich.console import Console

from cbet_jax.config import SettingsError
from cbet_jax.runs.directory import RunDirectoryError
from cbet_jax.runs.signals import is_work_left
from cbet_jax.setting_types import static_settings
from envs.errors import Check, did_you_mean
from experiments.common import commands, help_page, interrupts, invocation
from experiments.common.numbers import number_rules
from experiments.common.refusals import BAD_INPUT as BAD_INPUT
from experiments.common.refusals import refusal
from experiments.common.screen import flush_output, in_notebook, put

HELP_ALL = "--help-all"
HELP = ("-h", "--help", HELP_ALL)
FAILED = 1  # exit status
NAMED_VALUES = ("--grid", "--own", "--slurm")  # options whose values are NAME=VALUE ...

#: options that name code of one's own -> the module that loads it
OWN_CODE = {
    **dict.fromkeys(("--method", "--methods"), "cbet_jax.intrinsic.own"),
    **dict.fromkeys(("--env", "--envs", "--tasks"), "experiments.common.own_worlds"),
}


@dataclass(frozen=True)
class FirstWords:
    """The words of a command line that say where the defaults of all others come from."""

    preset: str | None = None
    out: Path | None = None
    resume: bool = False
    env: str | None = None  # whose task is learnt
    source: Annotated[Path | None, tyro.conf.arg(name="from")] = None  # the pre-trained run
    seed_index: int | None = None  # of the pre-trained run
    simulator: str | None = None  # that plays the scenes


def first_words(arguments: Sequence[str]) -> FirstWords:
    """Read the words that decide the defaults, and leave the rest for later."""
    known: FirstWords
    known, _ = parse(FirstWords, arguments, return_unknown_args=True, add_help=False)
    return known


def parse(kind: Any, arguments: Sequence[str], module: str = "", **options: Any) -> Any:
    """Read a command line into a frozen dataclass.

    Its class variable `COMMON`, if it has one, names the options that `--help` shows.

    Args:
        kind: the dataclass.
        arguments: the words of the command line.
        module: that was started, for the usage line of `--help`.
        **options: passed on to `tyro.cli`.

    Raises:
        SettingsError: the command line cannot be read, or its values cannot be run.
        SystemExit: it asks for help, which is printed.
    """
    _refuse_twice(arguments)
    given, arguments = arguments, _with_own_code(arguments)
    if module and _asked_options is not None:
        raise _OptionsFoundError(kind, options.get("default", tyro.MISSING))
    if module and not {*HELP}.isdisjoint(arguments):
        common = None if HELP_ALL in arguments else getattr(kind, "COMMON", ())
        put(_help(kind, module, common, options))
        raise SystemExit(0)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            parsed = tyro.cli(
                kind, args=list(arguments), prog=module, registry=number_rules(), **options
            )
    except SystemExit:
        raise SettingsError(_one_line(printed.getvalue())) from None
    if "return_unknown_args" not in options:
        return parsed
    known, others = parsed
    as_given = dict(zip(arguments, given, strict=True))  # names in full do not say the folder
    return known, [as_given.get(word, word) for word in others]


def _refuse_twice(arguments: Sequence[str]) -> None:
    """Refuse an option of NAME=VALUE ... that is given twice: only the last one would count.

    Raises:
        SettingsError: there is one.
    """
    given = [word.partition("=")[0] for word in arguments]
    for name in NAMED_VALUES:
        if given.count(name) > 1:
            raise SettingsError(f"{name} is given twice: name all of its values after one {name}")


def _with_own_code(arguments: Sequence[str]) -> Sequence[str]:
    """Load the methods and worlds that are somebody's own files, and name them as settings do."""
    if not any(":" in word for word in arguments):
        return arguments
    from cbet_jax import own_code  # imported here: it takes seconds

    loaders = {option: partial(_load, module) for option, module in OWN_CODE.items()}
    return list(own_code.loaded_words(arguments, loaders))


def _load(module: str, name: str) -> str:
    loaded: str = import_module(module).load(name)
    return loaded


def _help(kind: Any, module: str, common: Sequence[str] | None, options: Mapping[str, Any]) -> str:
    def printed() -> None:
        tyro.cli(kind, args=["--help"], registry=number_rules(), **options)

    choices = {"--method": _methods}
    return help_page.page(
        invocation.command_line(module), _description(kind), printed, common, choices
    )


def _methods() -> Sequence[str]:
    from cbet_jax.intrinsic import METHODS  # imported here: it takes seconds

    return tuple(METHODS)


def options_of(main: Callable[[list[str]], None]) -> tuple[Any, Any]:
    """Return the dataclass that a command reads its line into, and its default.

    The command is started, and stopped where it reads its line.
    """
    global _asked_options
    _asked_options = main
    try:
        main([])
    except _OptionsFoundError as found:
        return found.kind, found.default
    finally:
        _asked_options = None
    raise TypeError(f"{main} reads no command line")


_asked_options: Callable[[list[str]], None] | None = None  # the command whose options are looked up


class _OptionsFoundError(BaseException):
    """Carries what `options_of` looks for past all handlers of errors."""

    def __init__(self, kind: Any, default: Any) -> None:
        self.kind = kind
        self.default = default


def unknown_command(word: str) -> SettingsError:
    """Return the error that there is no such command, with the nearest ones."""
    return SettingsError(f"unknown command {word!r}; {did_you_mean(word, commands.MODULES)}")


@contextlib.contextmanager
def user_errors(*others: type[Exception]) -> Iterator[None]:
    """Turn bad input, and what the system refuses, into one line on stderr and an exit status.

    Args:
        *others: exceptions that mean bad input, besides those of settings and directories.
    """
    whole_process = interrupts.is_pythons_own() and not in_notebook()
    try:
        with _errors_in_a_line((SettingsError, RunDirectoryError, *others)):
            yield
    except SystemExit as end:
        if whole_process and end.code == interrupts.INTERRUPTED and is_work_left():
            os._exit(interrupts.INTERRUPTED)  # without waiting for a compiler, say
        raise


@contextlib.contextmanager
def _errors_in_a_line(bad_input: tuple[type[Exception], ...]) -> Iterator[None]:
    try:
        with interrupts.insistent():
            yield
    except bad_input as error:
        fail(str(error), BAD_INPUT)
    except KeyboardInterrupt:
        fail("interrupted", interrupts.INTERRUPTED)
    except Exception as error:
        found = refusal(error)
        if found is None:
            raise
        fail(found.line, found.status)
    finally:
        flush_output()


def show_checks(checks: Iterable[Check], console: Console) -> None:
    """Print each check as soon as it is made.

    Raises:
        SystemExit: one has failed.
    """
    failed = False
    for check in checks:
        console.print(str(check), soft_wrap=True, highlight=False, markup=False)
        failed |= bool(check.problem)
    if failed:
        raise SystemExit(FAILED)


def fail(message: str, status: int) -> NoReturn:
    """End the process with one line on stderr.

    Raises:
        SystemExit: always.
    """
    interrupts.answered()
    line = "".join(x if x.isprintable() else f"\\x{ord(x):02x}" for x in " ".join(message.split()))
    with contextlib.suppress(OSError, AttributeError):  # nobody listens
        sys.stderr.write(f"error: {line}\n")
        sys.stderr.flush()
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
