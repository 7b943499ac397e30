"""A user's own methods: a function in a file or an installed module.

    --method my_bonus.py:make        a function `make` in the file `my_bonus.py`
    --method package.module:make     the same in an installed module

The function takes the settings of the run and the number of actions, and returns an `Intrinsic`. A
third argument holds its own settings: the default value is a frozen dataclass of numbers and words
(`--own beta=0.5 decay=3`). `cbet_jax.own_code` loads it.
"""

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

from cbet_jax import own_code
from cbet_jax.config import SettingsError, TrainSettings
from cbet_jax.intrinsic import METHODS
from cbet_jax.intrinsic.interface import Intrinsic
from envs.errors import did_you_mean

BOOLEANS = {"true": True, "false": False}


def load(name: str) -> str:
    """Load a method, and add it to `METHODS`.

    Args:
        name: `FILE.py:FUNCTION` or `package.module:function`, with or without a digest.

    Returns:
        The name with the digest, which settings hold.

    Raises:
        SettingsError: there is no such function, or its file cannot be loaded.
    """
    full, make = own_code.load(name)
    METHODS.setdefault(full, partial(_made, full, make))
    return full


def loaded(name: str) -> str:
    """Return the name of a method that settings hold; one of a file is loaded, unless it was."""
    return load(name) if own_code.is_own(name) and name not in METHODS else name


def own_settings[S](default: S, words: Iterable[str]) -> S:
    """Return a method's own settings.

    Args:
        default: a frozen dataclass of numbers and words.
        words: NAME=VALUE.

    Raises:
        SettingsError: a name is unknown or named twice, or a value has another type, or the
            default is no number or word, or the dataclass refuses a value.
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
        if name in changed:
            raise SettingsError(f"--own names {name} twice")
        changed[name] = _value(name, value, type(known[name]))
    try:
        return replace(default, **changed)  # type: ignore[type-var]
    except ValueError as error:  # the dataclass's own check
        raise SettingsError(str(error)) from None


def _value(name: str, word: str, kind: type) -> Any:
    if kind not in (bool, int, float, str):
        raise SettingsError(f"own setting {name} is no number or word: --own cannot set it")
    try:
        value = BOOLEANS[word.lower()] if kind is bool else kind(word)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError
        return value
    except (ValueError, KeyError):
        raise SettingsError(f"own setting {name} takes a {kind.__name__}, not {word!r}") from None


def _made(name: str, make: Callable[..., Any], settings: TrainSettings, actions: int) -> Intrinsic:
    third = list(inspect.signature(make).parameters.values())[2:3]
    default = third[0].default if third else None
    has_own = is_dataclass(default) and not isinstance(default, type)
    if settings.own and not has_own:
        raise SettingsError(f"{own_code.plain(name)} has no settings of its own: leave --own out")
    with own_code.told_in_a_line(own_code.plain(name)):
        own = (own_settings(default, settings.own),) if has_own else ()
        method = make(settings, actions, *own)
    if not isinstance(method, Intrinsic):
        raise SettingsError(
            f"{own_code.plain(name)} must return an Intrinsic, not {type(method).__name__}"
        )
    return method
