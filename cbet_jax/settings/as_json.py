"""Settings as JSON, as run directories hold them."""

import dataclasses
import json
from typing import Any, get_args, get_type_hints


def to_json(settings: Any) -> dict[str, Any]:
    """Return a dataclass of settings as nested dictionaries, lists, numbers and strings."""
    return json.loads(json.dumps(dataclasses.asdict(settings)))


def from_json[T](kind: type[T], nested: dict[str, Any]) -> T:
    """Return the dataclass that `to_json` made `nested` from.

    A missing field is one that was added since, whose default is what was done before.

    Raises:
        TypeError: a field is unknown.
        SettingsError: the dataclass refuses a value.
    """
    hints = get_type_hints(kind)
    unknown = sorted(set(nested) - set(hints))
    if unknown:
        raise TypeError(f"unknown field {unknown[0]}")
    values = {}
    for name, hint in hints.items():
        if name not in nested:
            continue
        inners = get_args(hint) or (hint,)  # `X | None`: X, unless the value is null
        value = nested[name]
        for inner in inners:
            if dataclasses.is_dataclass(inner) and isinstance(inner, type) and value is not None:
                value = from_json(inner, value)
        values[name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def flattened(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return `{"train": {"frames": 7}}` as `{"train.frames": 7}`, lists as text."""
    flat: dict[str, Any] = {}
    for name, value in nested.items():
        if isinstance(value, dict):
            flat |= flattened(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = _shown(value) if isinstance(value, list) else value
    return flat


def first_difference(one: Any, other: Any, name: str = "") -> str | None:
    """Name the first field in which two nested dictionaries differ, with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(k for k in other if k not in one)]:
            found = first_difference(one.get(key), other.get(key), f"{name}.{key}" if name else key)
            if found:
                return found
        return None
    return None if one == other else f"{name} is {_shown(one)}, not {_shown(other)}"


def _shown(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
