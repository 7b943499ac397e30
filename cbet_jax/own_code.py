"""Code of one's own, in a file or in an installed module: loaded, and named with a digest.

    my_bonus.py:make        a function `make` in the file `my_bonus.py`
    package.module:make     the same in an installed module

A run's settings name such code with a digest of its file, as `my_bonus.py:make@1a2b3c4d`. So a run
that is resumed with a changed file is refused. A run keeps a copy of the file, which is never run.
"""

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from cbet_jax.settings.types import SettingsError
from envs.errors import did_you_mean

DIGITS = 8  # of the digest, in a name

_functions: dict[str, Callable[..., Any]] = {}  # that this process has loaded, by name
_sources: dict[str, bytes] = {}  # content of their files, by name
_given: dict[str, str] = {}  # the names that they were loaded by, by name


def is_own(name: str) -> bool:
    """Return whether a name is that of code of one's own."""
    return ":" in name


def plain(name: str) -> str:
    """Return the name of own code without its digest, as a command line has it."""
    return name.partition("@")[0]


def digest(name: str) -> str:
    """Return the digest in the name of own code; nothing of another name."""
    return name.partition("@")[2] if is_own(name) else ""


def load(name: str) -> tuple[str, Callable[..., Any]]:
    """Load a function.

    Args:
        name: `FILE.py:FUNCTION` or `package.module:function`, with or without a digest.

    Returns:
        Its name with the digest, which settings hold, and the function.

    Raises:
        SettingsError: there is no such function, or its file cannot be loaded.
    """
    place, _, function = plain(name).rpartition(":")
    is_file = place.endswith(".py")
    try:
        installed = None if is_file else importlib.import_module(place)
        path = Path(place if installed is None else inspect.getsourcefile(installed) or place)
        content = _read(path)
        full = f"{path.name}:{function}@{hashlib.sha256(content).hexdigest()[:DIGITS]}"
        if full in _functions:
            return full, _functions[full]
        module = installed or _module(path, content)
    except SettingsError:
        raise
    except Exception as error:
        raise SettingsError(f"{place} cannot be loaded: {type(error).__name__}: {error}") from None
    found = getattr(module, function, None)
    if not callable(found):
        names = [name for name, value in vars(module).items() if inspect.isfunction(value)]
        nearest = did_you_mean(function, names)
        raise SettingsError(f"{place} has no function {function!r}; {nearest}")
    _sources[full], _functions[full], _given[full] = content, found, plain(name)
    return full, found


def given(name: str) -> str:
    """Return the name by which a command line loads own code again; any other name as it is."""
    return _given.get(name, name)


def source(name: str) -> bytes | None:
    """Return the content of the file of own code that is loaded; None of the package's own."""
    return _sources.get(name)


def loaded_words(
    arguments: Iterable[str], loaders: Mapping[str, Callable[[str], str]]
) -> Iterator[str]:
    """Yield a command line's words; own code that it names is loaded, and named in full.

    Args:
        arguments: the words.
        loaders: of the options that name code: from a name to the name in full.

    Raises:
        SettingsError: some code cannot be loaded.
    """
    option = ""
    for word in arguments:
        prefix = ""
        if word.startswith("--"):
            option, equals, word = word.partition("=")
            prefix = option + equals
        load_one = loaders.get(option)
        yield prefix + (load_one(word) if load_one and is_own(word) else word)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None


def _module(path: Path, content: bytes) -> ModuleType:
    """Run a file's content, which was read once: what runs is what the digest is of."""
    module = ModuleType(f"{path.stem}_{hashlib.sha256(content).hexdigest()[:DIGITS]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    exec(compile(content, path, "exec"), vars(module))
    return module
