"""Load a user's own code from a file or an installed module, and name it with a digest.

    my_bonus.py:make        a function `make` in the file `my_bonus.py`
    package.module:make     the same in an installed module

A run's settings name such code with a digest of its file, as `my_bonus.py:make@1a2b3c4d`, so
resuming a run with a changed file is refused. A run keeps a copy of the file, which is never run.
"""

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from cbet_jax.settings.ranges import SettingsError
from envs.errors import did_you_mean, in_a_line, own_files, own_place
from envs.errors import is_own as is_own

DIGITS = 8  # length of the digest in a name

_functions: dict[str, Callable[..., Any]] = {}  # loaded functions by full name
_sources: dict[str, bytes] = {}  # contents of their files by full name
_given: dict[str, str] = {}  # names on the command line by full name


def plain(name: str) -> str:
    """Return the name of own code without its digest, as a command line has it."""
    place, colon, function = name.rpartition(":")  # a folder's name may have an @, too
    return place + colon + function.partition("@")[0]


def load(name: str) -> tuple[str, Callable[..., Any]]:
    """Load a function.

    Args:
        name: `FILE.py:FUNCTION` or `package.module:function`, with or without a digest.

    Returns:
        The name with the digest, which settings hold, and the function.

    Raises:
        SettingsError: there is no such function, its file cannot be loaded, or has another digest.
    """
    place, _, function = plain(name).rpartition(":")
    is_file = place.endswith(".py")
    try:
        installed = None if is_file else importlib.import_module(place)
        path = Path(place if installed is None else inspect.getsourcefile(installed) or place)
        own_files.add(str(path))
        content = _read(path)
        full = f"{path.name}:{function}@{hashlib.sha256(content).hexdigest()[:DIGITS]}"
        if not full.endswith(name.removeprefix(plain(name))):  # the digest, if there is one
            raise SettingsError(f"{plain(name)} was changed: it is no longer {name}")
        if full in _functions:
            return full, _functions[full]
        module = installed or _module(path, content)
        found = getattr(module, function, None)
        if callable(found):
            inspect.signature(found)  # which functions that are not of Python may not have
    except SettingsError:
        raise
    except (Exception, SystemExit) as error:
        raise SettingsError(f"{plain(name)} cannot be loaded: {in_a_line(error)}") from None
    if not callable(found):
        functions = inspect.getmembers(module, inspect.isfunction)
        names = [name for name, value in functions if value.__module__ == module.__name__]
        nearest = did_you_mean(function, names)
        raise SettingsError(f"{place} has no function {function!r}; {nearest}")
    _sources[full], _functions[full], _given[full] = content, found, plain(name)
    return full, found


@contextmanager
def told_in_a_line(name: str = "") -> Iterator[None]:
    """Turn whatever own code raises in the block, `sys.exit` too, into one line.

    Raises:
        SettingsError: own code raised; the message names its line, or `name` if none ran.
    """
    try:
        yield
    except (SettingsError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if own_place(error):
            raise SettingsError(in_a_line(error)) from None
        if not name:
            raise
        raise SettingsError(f"{name}: {in_a_line(error)}") from None


def given(name: str) -> str:
    """Return the name by which a command line loads own code again; other names unchanged."""
    return _given.get(name, name)


def source(name: str) -> bytes | None:
    """Return the content of the file of loaded own code; None for the package's code."""
    return _sources.get(name)


def changed_values(arguments: Iterable[str], change: Callable[[str, str], str]) -> Iterator[str]:
    """Yield a command line's words, each value changed by a function of its option and itself."""
    option = ""
    for word in arguments:
        prefix = ""
        if word.startswith("--"):
            option, equals, word = word.partition("=")
            prefix = option + equals
        yield prefix + change(option, word)


def _read(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise SettingsError(f"{path} cannot be read: it is no ordinary file")
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None


def _module(path: Path, content: bytes) -> ModuleType:
    """Run a file's content, read only once: the digest is of the code that runs."""
    module = ModuleType(f"{path.stem}_{hashlib.sha256(content).hexdigest()[:DIGITS]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    exec(compile(content, path, "exec"), vars(module))
    return module
