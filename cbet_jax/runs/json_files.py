"""Settings and records as JSON: what run directories hold is written and read here."""

import dataclasses
import json
from pathlib import Path
from typing import Any, get_args

from cbet_jax.config import RunSettings
from cbet_jax.runs.atomic_write import replacing


def to_json(settings: RunSettings) -> dict[str, Any]:
    """Returns the settings as nested dictionaries, lists, numbers and strings."""
    nested: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(settings)))
    return nested


def from_json[T](kind: type[T], nested: dict[str, Any]) -> T:
    """Returns the dataclass that `to_json` made `nested` from.

    What may be null may be missing, so that runs from before there was such a field stay readable.

    Raises:
        KeyError: a field is missing. TypeError: a field is unknown.
    """
    unknown = sorted(set(nested) - {f.name for f in dataclasses.fields(kind)})  # type: ignore[arg-type]
    if unknown:
        raise TypeError(f"unknown field {unknown[0]}")
    values = {}
    for item in dataclasses.fields(kind):  # type: ignore[arg-type]
        inners = get_args(item.type) or (item.type,)  # `X | None` is X where it is not null
        value = nested.get(item.name) if type(None) in inners else nested[item.name]
        for inner in inners:
            if dataclasses.is_dataclass(inner) and isinstance(inner, type) and value is not None:
                value = from_json(inner, value)
        values[item.name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def first_difference(one: Any, other: Any, name: str = "") -> str | None:
    """Names the first field in which two nested dictionaries differ, with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(k for k in other if k not in one)]:
            inner = f"{name}.{key}" if name else key
            found = first_difference(one.get(key), other.get(key), inner)
            if found:
                return found
        return None
    return None if one == other else f"{name} is {_shown(one)}, not {_shown(other)}"


def _shown(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def write_json(path: Path, content: Any) -> None:
    """Writes a file that is either complete or absent, whenever the process dies."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n")
