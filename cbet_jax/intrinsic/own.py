"""Methods of one's own: a function in a file, or in a module that is installed.

    --method my_bonus.py:make        a function `make` in the file `my_bonus.py`
    --method package.module:make     the same in an installed module

The function takes the settings of the run and the number of actions, and returns an `Intrinsic`. If
it has settings of its own, it takes them third; its default value for them is a frozen dataclass of
numbers and words (`--own beta=0.5 decay=3`).

A run's settings name such a method with a digest of its file, as `my_bonus.py:make@1a2b3c4d`. So a
run that is resumed with a changed file is refused.
"""

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from cbet_jax.config import SettingsError, TrainSettings
from cbet_jax.intrinsic import METHODS, is_own
from cbet_jax.intrinsic.types import Intrinsic
from envs.errors import did_you_mean

DIGITS = 8  # of the digest, in a method's name
OPTIONS = ("--method", "--methods")  # that name methods
BOOLEANS = {"true": True, "false": False}

_sources: dict[str, bytes] = {}  # of the methods that this process has loaded, by name


def load(name: str) -> str:
    """Load a method, and add it to `METHODS`.

    Args:
        name: `FILE.py:FUNCTION` or `package.module:function`, with or without a digest.

    Returns:
        Its name with the digest, which settings hold.

    Raises:
        SettingsError: there is no such function, or its file cannot be loaded.
    """
    place, _, function = name.partition("@")[0].rpartition(":")
    is_file = place.endswith(".py")
    try:
        installed = None if is_file else importlib.import_module(place)
        path = Path(place if installed is None else inspect.getsourcefile(installed) or place)
        content = _read(path)
        full = f"{path.name}:{function}@{hashlib.sha256(content).hexdigest()[:DIGITS]}"
        if full in METHODS:
            return full
        module = installed or _module(path, content)
    except SettingsError:
        raise
    except Exception as error:
        raise SettingsError(f"{place} cannot be loaded: {type(error).__name__}: {error}") from None
    make = getattr(module, function, None)
    if not callable(make):
        names = [name for name, value in vars(module).items() if inspect.isfunction(value)]
        nearest = did_you_mean(function, names)
        raise SettingsError(f"{place} has no function {function!r}; {nearest}")
    _sources[full] = content
    METHODS[full] = partial(_made, full, make)
    return full


def loaded_words(arguments: Iterable[str]) -> Iterator[str]:
    """Yield a command line's words; own methods that it names are loaded, and named in full.

    Raises:
        SettingsError: one cannot be loaded.
    """
    option = ""
    for word in arguments:
        prefix = ""
        if word.startswith("--"):
            option, equals, word = word.partition("=")
            prefix = option + equals
        is_method = option in OPTIONS and is_own(word)
        yield prefix + (load(word) if is_method else word)


def source(name: str) -> bytes | None:
    """Return the content of the file of a method that is loaded; None of the package's own."""
    return _sources.get(name)


def own_settings[S](default: S, words: Iterable[str]) -> S:
    """Return a method's own settings.

    Args:
        default: a frozen dataclass of numbers and words.
        words: NAME=VALUE.

    Raises:
        SettingsError: a name is unknown, or a value has another type.
    """
    known = {field.name: getattr(default, field.name) for field in fields(default)}  # type: ignore[arg-type]
    changed: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        name = name.replace("-", "_")
        if not equals:
            raise SettingsError(f"--own takes NAME=VALUE, not {word!r}")
        if name not in known:
            raise SettingsError(f"the method has no setting {name!r}; {did_you_mean(name, known)}")
        changed[name] = _value(name, value, type(known[name]))
    try:
        return replace(default, **changed)  # type: ignore[type-var]
    except ValueError as error:  # of the dataclass's own check
        raise SettingsError(str(error)) from None


def _value(name: str, word: str, kind: type) -> Any:
    try:
        return BOOLEANS[word.lower()] if kind is bool else kind(word)
    except (ValueError, KeyError):
        raise SettingsError(f"own setting {name} takes a {kind.__name__}, not {word!r}") from None


def _made(name: str, make: Callable[..., Any], settings: TrainSettings, actions: int) -> Intrinsic:
    """Return the method that a function of somebody's own makes."""
    third = list(inspect.signature(make).parameters.values())[2:3]
    default = third[0].default if third else None
    if is_dataclass(default) and not isinstance(default, type):
        method = make(settings, actions, own_settings(default, settings.own))
    elif settings.own:
        raise SettingsError(f"{name} has no settings of its own: leave --own out")
    else:
        method = make(settings, actions)
    if not isinstance(method, Intrinsic):
        raise SettingsError(f"{name} must return an Intrinsic, not {type(method).__name__}")
    return method


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
