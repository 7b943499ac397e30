"""How numbers are written on a command line: 9000000, 9_000_000, 9e6 or 9M."""

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from types import NoneType
from typing import Any, Union, get_args

from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    UnsupportedTypeAnnotationError,
)

SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
NUMBER = re.compile(r"([+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)([kMG]?)")

MOST_DIGITS = 30

Spec = PrimitiveConstructorSpec | UnsupportedTypeAnnotationError | None


def whole_number(word: str) -> int:
    """Read a whole number.

    Raises:
        ValueError: it is none.
    """
    found = NUMBER.fullmatch(word)
    if not found:
        raise ValueError(f"{word!r} is no whole number, such as 9000000, 9e6 or 9M")
    number = Decimal(found[1]) * SUFFIXES[found[2]]
    if number.adjusted() > MOST_DIGITS:  # to make an int of 1e999999999 would take for ever
        raise ValueError(f"{word[:MOST_DIGITS]!r} is too large")
    if number != number.to_integral_value():
        raise ValueError(f"{word!r} is no whole number")
    return int(number)


@cache
def number_rules() -> ConstructorRegistry:
    """Return tyro's rules, changed for whole numbers and for values that may be left out."""
    rules = ConstructorRegistry()

    @rules.primitive_rule
    def integers(info: PrimitiveTypeInfo) -> Spec:
        if info.type is not int:
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="N",
            instance_from_str=lambda words: whole_number(words[0]),
            is_instance=lambda value: isinstance(value, int) and not isinstance(value, bool),
            str_from_instance=lambda value: [str(value)],
        )

    @rules.primitive_rule
    def optional(info: PrimitiveTypeInfo) -> Spec:
        """Read `X | None` as X, or the word None, which help does not mention."""
        kinds = get_args(info.type)
        if NoneType not in kinds:
            return None
        others: Any = Union[tuple(kind for kind in kinds if kind is not NoneType)]  # noqa: UP007
        inner = PrimitiveTypeInfo.make(others, info.markers)
        spec = ConstructorRegistry.get_primitive_spec(inner)
        if isinstance(spec, UnsupportedTypeAnnotationError) or spec.nargs != 1:
            return None

        def read(words: Sequence[str]) -> Any:
            return None if list(words) == ["None"] else spec.instance_from_str(list(words))

        return PrimitiveConstructorSpec(
            nargs=1,
            metavar=spec.metavar,
            instance_from_str=read,
            is_instance=lambda value: value is None or spec.is_instance(value),
            str_from_instance=lambda v: ["None"] if v is None else spec.str_from_instance(v),
            choices=spec.choices and (*spec.choices, "None"),
        )

    return rules
