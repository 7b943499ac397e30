"""Read command lines with tyro, and refuse bad input in one line."""

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import tyro
from rich.console import Console
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from cbet_jax import own_code
from cbet_jax.config import SettingsError
from cbet_jax.runs.reading import RunDirectoryError, UnreadableError
from cbet_jax.runs.signals import is_work_left
from envs.errors import Check
from envs.names import our_name
from experiments.common import interrupts, invocation
from experiments.common.refusals import BAD_INPUT as BAD_INPUT
from experiments.common.refusals import NOT_WRITTEN, refusal
from experiments.common.screen import flush_output, forget_output, in_notebook, printable, say

FAILED = 1  # exit status
NAMED_VALUES = ("--grid", "--own", "--slurm")  # options whose values are NAME=VALUE ...
METHOD_OPTIONS = ("--method", "--methods")  # their values may be the user's own code
WORLD_OPTIONS = ("--env", "--envs", "--tasks")  # so may these options' values

NUMBER = re.compile(r"([+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)([kMG]?)")
SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
MOST_DIGITS = 30  # of a whole number
NARROWEST = 40  # columns of a terminal that help is written for

type Said = dict[str, list[str]]  # an option's name -> the words that follow it


def parse(kind: Any, arguments: Sequence[str] | None, module: str = "", **options: Any) -> Any:
    """Read a command line into a frozen dataclass with tyro.

    Args:
        kind: the dataclass.
        arguments: the words of the command line (None: `sys.argv`).
        module: the command that was started, for the usage line of `--help`.
        **options: passed on to `tyro.cli`.

    Raises:
        SettingsError: own code cannot be loaded, or the dataclass refuses a value.
        SystemExit: help was printed, or tyro has printed why the line cannot be read.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    _refuse_twice(arguments)
    if "return_unknown_args" not in options:  # the unknown words go to another command as given
        arguments = list(own_code.changed_values(arguments, _full_name))
    prog = invocation.command_line(module) if module else None
    if shutil.get_terminal_size().columns < NARROWEST:  # tyro's help would fail, or never end
        os.environ["COLUMNS"] = str(NARROWEST)
    try:
        read = tyro.cli(kind, args=list(arguments), prog=prog, registry=number_rules(), **options)
    except BrokenPipeError:  # a reader of the help has had enough
        forget_output()
        raise SystemExit(0) from None
    named = read[0] if "return_unknown_args" in options else read
    for name, values in said(arguments).items():
        if "" in values:
            raise SettingsError(f"{name} is given an empty value")
        field = name.removeprefix("--").replace("-", "_")
        if not values and isinstance(getattr(named, field, None), tuple):
            raise SettingsError(f"{name} names nothing: give it a value, or leave it out")
    return read


def said(arguments: Sequence[str]) -> Said:
    """Return the words that follow each option of a command line, by the option's name."""
    options: Said = {}
    values: list[str] = []
    for word in arguments:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            values = options[name.replace("_", "-")] = [value] if equals else []
        else:
            values.append(word)
    return options


def value_of(options: Said, name: str) -> str | None:
    """Return the value that a command line gives an option, None if it gives no value."""
    return next(iter(options.get(name, ())), None)


def _refuse_twice(arguments: Sequence[str]) -> None:
    """Refuse a second option of NAME=VALUE ...: only the last one would count."""
    given = [word.partition("=")[0] for word in arguments]
    for name in NAMED_VALUES:
        if given.count(name) > 1:
            raise SettingsError(f"{name} is given twice: name all of its values after one {name}")


def _full_name(option: str, name: str) -> str:
    """Return our name of MiniGrid's environment, or load own code and add a digest to its name."""
    if option in WORLD_OPTIONS:
        return load_world(name) if own_code.is_own(name) else our_name(name)
    if option not in METHOD_OPTIONS or not own_code.is_own(name):
        return name
    from cbet_jax.intrinsic import own  # imported here: it takes seconds

    return own.load(name)


def load_world(name: str) -> str:
    """Register a world of the user's own, and return its name with a digest.

    Args:
        name: `FILE.py:FUNCTION` or `package.module:function`; an existing file's path is a scene.

    Raises:
        SettingsError: the function cannot be loaded, or makes no world.
    """
    from envs.minigrid.generators import own_worlds  # imported here: it takes seconds

    if Path(name).exists():
        return name
    if "?" in name:
        raise SettingsError(f"{name}: a world of your own says its time limit itself: leave ? out")
    full, make = own_code.load(name)
    try:
        own_worlds.add(full, make)
    except own_worlds.OwnWorldError as error:
        raise SettingsError(f"{own_code.plain(name)}: {error}") from None
    return full


def whole_number(word: str) -> int:
    """Read a whole number, written 9000000, 9_000_000, 9e6 or 9M, or raise ValueError."""
    found = NUMBER.fullmatch(word)
    if not found:
        raise ValueError(f"{word!r} is no whole number, such as 9000000, 9e6 or 9M")
    number = Decimal(found[1]) * SUFFIXES[found[2]]
    if number.adjusted() > MOST_DIGITS:  # such as 1e999, whose digits would fill a message
        raise ValueError(f"{word[:MOST_DIGITS]!r} is too large")
    if number != number.to_integral_value():
        raise ValueError(f"{word!r} is no whole number")
    return int(number)


@cache
def number_rules() -> ConstructorRegistry:
    """Return tyro's rules, with whole numbers read by `whole_number`."""
    rules = ConstructorRegistry()

    @rules.primitive_rule
    def integers(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[int] | None:
        if info.type is not int:
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="N",
            instance_from_str=lambda words: whole_number(words[0]),
            is_instance=lambda value: isinstance(value, int) and not isinstance(value, bool),
            str_from_instance=lambda value: [str(value)],
        )

    return rules


@contextlib.contextmanager
def user_errors(*others: type[Exception]) -> Iterator[None]:
    """Turn bad input and errors of the system into one line on stderr and an exit status.

    Args:
        *others: further exceptions that mean bad input.
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
        with interrupts.insistent(), own_code.told_in_a_line():
            yield
    except UnreadableError as error:
        fail(str(error), NOT_WRITTEN)
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
    """Print each check as soon as it is made; exit if one has failed."""
    failed = False
    for check in checks:
        say(console, check)
        failed |= bool(check.problem)
    if failed:
        raise SystemExit(FAILED)


def fail(message: str, status: int) -> NoReturn:
    """End the process with one line on stderr."""
    interrupts.answered()
    line = printable(" ".join(message.split()))
    with contextlib.suppress(OSError, AttributeError):  # stderr is closed
        sys.stderr.write(f"error: {line}\n")
        sys.stderr.flush()
    raise SystemExit(status)
