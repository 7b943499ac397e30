"""Types of settings, which say what a setting may be, and the check that reads them.

    frames: PositiveInt            the range of a number
    worlds: Static[PositiveInt]    a setting that shapes the compiled program

Each value of a static setting needs another program. Real numbers (fields of type `float`) only
fill in values, so one program trains with many values of them (`numbers`, `with_numbers`). One
exception: without `counts.capacity`, the size of count tables depends on `frames` and on whether
counts are ever reset (`counts.reset_probability`, `counts.random_resets`).
"""

import copy
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")


class SettingsError(ValueError):
    """Settings that cannot be run, with one line that says why."""


@dataclass(frozen=True)
class Requirement:
    """What a setting must be."""

    text: str  # follows "NAME must be"
    holds: Callable[[Any], bool]


class StaticMark:
    """Marks a setting that shapes the compiled program."""


class SwitchMark:
    """Marks a real number that shapes the compiled program by being 0, and by nothing else."""


@dataclass(frozen=True)
class Before:
    """Marks a setting that older runs were stored without, and gives the value they ran with."""

    value: Any


Static = Annotated[T, StaticMark()]
Switch = Annotated[T, SwitchMark()]


def at_least(least: int) -> Requirement:
    """Return the requirement of a least value."""
    return Requirement(f"at least {least}", lambda x: x >= least)


def at_most(most: int) -> Requirement:
    """Return the requirement of a greatest value."""
    return Requirement(f"at most {most}", lambda x: x <= most)


LARGEST_INT = 2**31 - 1  # that the program counts with
LARGEST_FLOAT = 3.4e38  # that it computes with
MOST_FRAMES = 10**12
SEEDS_THERE_ARE = 2**32  # a larger one would be the same as a smaller one
SHOWN = 60  # characters of a value in a message
KINDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "text",
}

PositiveInt = Annotated[int, at_least(1), at_most(LARGEST_INT)]
NonNegativeInt = Annotated[int, at_least(0), at_most(LARGEST_INT)]
Seed = Annotated[int, at_least(0), at_most(SEEDS_THERE_ARE - 1)]
Frames = Annotated[int, at_least(1), at_most(MOST_FRAMES)]
Layers = Annotated[int, at_least(1), at_most(64)]
Units = Annotated[int, at_least(1), at_most(2**16)]
Worlds = Annotated[int, at_least(1), at_most(2**20)]  # also sequences in a batch
Steps = Annotated[int, at_least(1), at_most(10**6)]  # of a sequence, or of an episode
Iterations = Annotated[int, at_least(1), at_most(10**6)]  # in a row
Episodes = Annotated[int, at_least(1), at_most(10**5)]
Seeds = Annotated[int, at_least(1), at_most(2**16)]  # side by side
Processes = Annotated[int, at_least(1), at_most(1024)]  # or devices, side by side
PositiveFloat = Annotated[float, Requirement("above 0", lambda x: x > 0)]
NonNegativeFloat = Annotated[float, at_least(0)]
Probability = Annotated[float, Requirement("between 0 and 1", lambda x: 0 <= x <= 1)]
BelowOne = Annotated[float, Requirement("at least 0 and below 1", lambda x: 0 <= x < 1)]


def check_fields(settings: Any, prefix: str = "") -> None:
    """Refuse a dataclass with a value that its types do not allow, or with a number not finite.

    Args:
        settings: the dataclass; those inside it check their own fields.
        prefix: of the names in messages.

    Raises:
        SettingsError: the first value found wrong, in one line.
    """
    hints = _hints(settings.__class__)
    for field in fields(settings):
        _check_value(prefix + field.name, getattr(settings, field.name), hints[field.name])


def check_seeds(first_seed: int, seeds: int) -> None:
    """Refuse seeds of which the last ones would be the same as smaller ones.

    Raises:
        SettingsError: there are such.
    """
    if first_seed + seeds > SEEDS_THERE_ARE:
        most = SEEDS_THERE_ARE - seeds
        raise SettingsError(f"first_seed must be at most {most}, not {first_seed}")


def check_between(name: str, value: int, low: int, high: int) -> None:
    """Refuse an integer out of a range whose ends are included.

    Args:
        name: of the setting.
        value: of the setting.
        low: the least value.
        high: the greatest value.

    Raises:
        SettingsError: it is out of the range.
    """
    if not low <= value <= high:
        raise SettingsError(f"{name} must be in {low}..{high}, not {value}")


def value_before(kind: type, name: str) -> Any:
    """Return the value that older runs had for a setting that they were stored without.

    Args:
        kind: the dataclass.
        name: of its field: one that is marked with `Before`, or that may be None.

    Raises:
        KeyError: runs have always been stored with it.
    """
    hint = _hints(kind)[name]
    for part in getattr(hint, "__metadata__", ()):
        if isinstance(part, Before):
            return part.value
    if type(None) in _parts(hint):
        return None
    raise KeyError(name)


def kept_before[S](settings: S, stored: S) -> S:
    """Return settings with another run's values wherever `Before` marks a setting.

    So defaults of today do not contradict a run that was begun with those of its time.

    Args:
        settings: a dataclass.
        stored: the other run's, of the same type.
    """
    kept: dict[str, Any] = {}
    for name, hint in _hints(cast(Any, settings).__class__).items():
        value, other = getattr(settings, name), getattr(stored, name)
        if any(isinstance(part, Before) for part in getattr(hint, "__metadata__", ())):
            kept[name] = other
        elif is_dataclass(value) and is_dataclass(other):
            kept[name] = kept_before(value, other)
    return replace(cast(Any, settings), **kept)


def static_settings(kind: type, prefix: str = "") -> tuple[str, ...]:
    """Return the names of a dataclass's static settings, such as `network.channels`.

    Args:
        kind: the dataclass; those inside it are looked through, too.
        prefix: of the names.
    """
    found: list[str] = []
    for name, hint in _hints(kind).items():
        parts = list(_parts(hint))
        if _has(hint, StaticMark):
            found.append(prefix + name)
        for inner in parts:
            if isinstance(inner, type) and is_dataclass(inner):
                found += static_settings(inner, f"{prefix}{name}.")
    return tuple(found)


def numbers(settings: Any, prefix: str = "") -> dict[str, float]:
    """Return the real numbers of a dataclass that only fill in values, such as `loss.discount`.

    A number that is None, or a `Switch` that is 0, is left out: it shapes the program.

    Args:
        settings: the dataclass; those inside it are looked through, too.
        prefix: of the names.
    """
    found: dict[str, float] = {}
    for name, hint in _hints(settings.__class__).items():
        value = getattr(settings, name)
        if is_dataclass(value):
            found |= numbers(value, f"{prefix}{name}.")
        elif value is not None and _is_number(hint) and (value or not _has(hint, SwitchMark)):
            found[prefix + name] = float(value)
    return found


def with_numbers[S](settings: S, values: Mapping[str, Any], prefix: str = "") -> S:
    """Return settings with other numbers, unchecked: they may be arrays of a traced function.

    Args:
        settings: a dataclass.
        values: name of a number, as `numbers` names it -> its value.
        prefix: of the names.
    """
    changed = copy.copy(settings)
    for name in _hints(cast(Any, settings).__class__):
        value = getattr(settings, name)
        if is_dataclass(value):
            value = with_numbers(value, values, f"{prefix}{name}.")
        object.__setattr__(changed, name, values.get(prefix + name, value))
    return changed


def without_numbers[S](settings: S) -> S:
    """Return settings, to be compared only, that are equal for all runs of one program."""
    return with_numbers(settings, dict.fromkeys(numbers(settings), "another number"))


def _is_number(hint: Any) -> bool:
    return float in _parts(hint) and not _has(hint, StaticMark)


def _has(hint: Any, mark: type) -> bool:
    return any(isinstance(part, mark) for part in _parts(hint))


def _check_value(name: str, value: Any, hint: Any) -> None:
    if not _is_of(value, hint):
        raise SettingsError(f"{name} must be {_described(hint)}, not {value!r:.{SHOWN}}")
    if value is None:
        return
    if isinstance(value, float) and not math.isfinite(value):
        raise SettingsError(f"{name} must be a finite number, not {value}")
    if isinstance(value, float) and abs(value) > LARGEST_FLOAT:
        raise SettingsError(f"{name} must be at most {LARGEST_FLOAT}, not {value}")
    for part in _parts(hint):
        if isinstance(part, Requirement) and not part.holds(value):
            raise SettingsError(f"{name} must be {part.text}, not {value}")


def _is_of(value: Any, hint: Any) -> bool:
    """Return whether a value is of a field's type; an array may stand for a real number."""
    if Any in type(value).__mro__:  # a stand-in: tyro has one for what a command line must say
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
    if hint is float and hasattr(value, "dtype"):
        return True
    if hint in (int, float):
        return isinstance(value, int | hint) and not isinstance(value, bool)
    return isinstance(value, kind or hint)


def _described(hint: Any) -> str:
    """Return what follows "NAME must be"; that it may be None is left out."""
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


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _parts(hint: Any) -> Iterator[Any]:
    """Yield a type, and all types and marks that it is made of."""
    yield hint
    for part in get_args(hint):
        yield from _parts(part)
