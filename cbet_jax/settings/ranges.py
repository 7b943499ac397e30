"""Types of settings, which say their ranges, and the check that reads them.

    frames: PositiveInt            the range of a number
    worlds: Static[PositiveInt]    a setting that shapes the compiled program

Each value of a static setting needs another program. Real numbers (fields of type `float`) only
fill in values, so one program trains with many values of them (`cbet_jax.settings.swept`). One
exception: without `counts.capacity`, the size of count tables depends on `frames` and on whether
counts are ever reset (`counts.reset_probability`, `counts.random_resets`).
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class SettingsError(Exception):
    """Settings that cannot be run, with one line that says why."""


@dataclass(frozen=True)
class Requirement:
    """What a setting must be."""

    text: str  # follows "NAME must be"
    holds: Callable[[Any], bool]


class Mark(Enum):
    """How a setting shapes the compiled program."""

    STATIC = "by each of its values"
    SWITCH = "by being 0, and by nothing else"


Static = Annotated[T, Mark.STATIC]
Switch = Annotated[T, Mark.SWITCH]


def at_least(least: int) -> Requirement:
    """Return the requirement of a least value."""
    return Requirement(f"at least {least}", lambda x: x >= least)


def at_most(most: int) -> Requirement:
    """Return the requirement of a greatest value."""
    return Requirement(f"at most {most}", lambda x: x <= most)


LARGEST_INT = 2**31 - 1  # the program counts with 32 bits
MOST_FRAMES = 10**12
SEED_RANGE = 2**32  # seeds wrap there
FLOAT32 = Requirement("a finite number of at most 3.4e38", lambda x: abs(x) <= 3.4e38)
SHOWN = 60  # characters of a value in a message
KINDS = {int: "a whole number", float: "a number", bool: "True or False", str: "text"}

PositiveInt = Annotated[int, at_least(1), at_most(LARGEST_INT)]
NonNegativeInt = Annotated[int, at_least(0), at_most(LARGEST_INT)]
Seed = Annotated[int, at_least(0), at_most(SEED_RANGE - 1)]
Frames = Annotated[int, at_least(1), at_most(MOST_FRAMES)]
Layers = Annotated[int, at_least(1), at_most(64)]
Units = Annotated[int, at_least(1), at_most(2**16)]
Worlds = Annotated[int, at_least(1), at_most(2**20)]  # or sequences in a batch
Steps = Annotated[int, at_least(1), at_most(10**6)]  # steps in a sequence or an episode
Iterations = Annotated[int, at_least(1), at_most(10**6)]  # iterations in a row
Episodes = Annotated[int, at_least(1), at_most(10**5)]
Seeds = Annotated[int, at_least(1), at_most(2**16)]  # side by side
Processes = Annotated[int, at_least(1), at_most(1024)]  # or devices, side by side
PositiveFloat = Annotated[float, Requirement("above 0", lambda x: x > 0)]
NonNegativeFloat = Annotated[float, at_least(0)]
Probability = Annotated[float, Requirement("between 0 and 1", lambda x: 0 <= x <= 1)]
BelowOne = Annotated[float, Requirement("at least 0 and below 1", lambda x: 0 <= x < 1)]


def check_fields(settings: Any, prefix: str = "") -> None:
    """Refuse a dataclass with a value outside its types, or an infinite number or NaN.

    Args:
        settings: the dataclass; those inside it check their own fields.
        prefix: begins the names in messages.

    Raises:
        SettingsError: the first wrong value, in one line.
    """
    for field, hint in hints(settings.__class__).items():
        name, value = prefix + field, getattr(settings, field)
        if not _is_of(value, hint):
            raise SettingsError(f"{name} must be {_described(hint)}, not {value!r:.{SHOWN}}")
        parts = parts_of(hint)
        real = float in parts and isinstance(value, float | int)
        for part in (FLOAT32, *parts) if real else parts:
            if value is not None and isinstance(part, Requirement) and not part.holds(value):
                raise SettingsError(f"{name} must be {part.text}, not {value}")


def check_seeds(first_seed: int, seeds: int) -> None:
    """Refuse seeds that would wrap.

    Raises:
        SettingsError: the seed range overflows.
    """
    most = SEED_RANGE - seeds
    if first_seed > most:
        raise SettingsError(f"first_seed must be at most {most}, not {first_seed}")


def check_between(name: str, value: int, low: int, high: int) -> None:
    """Refuse a setting outside of `low..high`, both included, with a `SettingsError`."""
    if not low <= value <= high:
        raise SettingsError(f"{name} must be in {low}..{high}, not {value}")


@functools.cache
def hints(kind: type) -> dict[str, Any]:
    """Return the types of a dataclass's fields, by name."""
    return get_type_hints(kind, include_extras=True)


@functools.cache
def parts_of(hint: Any) -> tuple[Any, ...]:
    """Return a type, and all types and marks in it."""
    return (hint, *(part for inner in get_args(hint) for part in parts_of(inner)))


def _is_of(value: Any, hint: Any) -> bool:
    """Return whether a value is of a field's type."""
    if Any in type(value).__mro__:  # tyro's stand-in for a required value
        return True
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Annotated:
        return _is_of(value, parts[0])
    if kind in (Union, UnionType):
        return any(_is_of(value, part) for part in parts)
    if kind is Literal:
        return value in parts
    if kind is tuple:
        return isinstance(value, tuple) and all(_is_of(each, parts[0]) for each in value)
    if hint in (int, float):
        return isinstance(value, int | hint) and not isinstance(value, bool)
    return isinstance(value, kind or hint)


def _described(hint: Any) -> str:
    """Describe a type after "NAME must be", without None."""
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Annotated:
        return _described(parts[0])
    if kind in (Union, UnionType):
        return " or ".join(_described(part) for part in parts if part is not type(None))
    if kind is Literal:
        return " or ".join(map(str, parts))
    if kind is tuple:
        return f"a tuple of which each part is {_described(parts[0])}"
    return KINDS.get(hint, getattr(hint, "__name__", str(hint)))
