"""Numbers that differ between the runs of one program: settings as trees of JAX.

The leaves of settings are the real numbers that only fill in values; all else is static, a part of
the tree's structure. A number that all runs share stays a constant of the program, which then
computes the same bits as a program of one run. Those that differ are arrays, one number an agent.
"""

from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any

import jax
import numpy as np

from cbet_jax.config import SettingsError, TrainSettings
from cbet_jax.settings.as_json import first_difference, to_json
from cbet_jax.settings.ranges import Mark, hints, parts_of


def differing[S](several: Sequence[S]) -> S:
    """Return settings with arrays `[runs]` where numbers differ, and None for all others.

    Raises:
        SettingsError: the settings of the runs differ in more than numbers.
    """
    static = [jax.tree.map(lambda _: "another number", settings) for settings in several]
    for other in static:
        if difference := first_difference(to_json(static[0]), to_json(other)):
            raise SettingsError(
                f"runs of one program differ in real numbers only, and these in more: {difference}"
            )

    def column(*numbers: float) -> np.ndarray | None:
        return np.array(numbers, np.float32) if len(set(numbers)) > 1 else None

    return jax.tree.map(column, *several)


def shared(settings: TrainSettings) -> Any:
    """Return what is equal in all runs of one program: all but the numbers that may differ."""
    return jax.tree.structure(settings)


def traced[S](settings: S) -> S:
    """Return settings with None for every untraced number."""
    return jax.tree.map(lambda leaf: leaf if isinstance(leaf, jax.Array) else None, settings)


def with_numbers[S](settings: S, numbers: S) -> S:
    """Return settings with the numbers of `numbers`, except where these are None."""
    return jax.tree.map(
        lambda number, own: own if number is None else number,
        numbers,
        settings,
        is_leaf=lambda leaf: leaf is None,
    )


def _register(kind: type) -> None:
    """Register a dataclass of settings, and those in it, as trees of JAX."""
    types = hints(kind)
    for inner in types.values():
        if isinstance(inner, type) and is_dataclass(inner):
            _register(inner)

    def flatten(settings: Any) -> tuple[tuple[Any, ...], Any]:
        values = {name: getattr(settings, name) for name in types}
        leaves = [name for name in types if _may_differ(types[name], values[name])]
        static = tuple((name, values[name]) for name in types if name not in leaves)
        return tuple(values[name] for name in leaves), (tuple(leaves), static)

    def unflatten(names: Any, leaves: Sequence[Any]) -> Any:
        settings: Any = object.__new__(kind)  # unchecked: JAX stores other objects in fields, too
        vars(settings).update(zip(names[0], leaves, strict=True), **dict(names[1]))
        return settings

    jax.tree_util.register_pytree_node(kind, flatten, unflatten)


def _may_differ(hint: Any, value: Any) -> bool:
    if is_dataclass(hint):
        return True
    parts = list(parts_of(hint))
    is_off = Mark.SWITCH in parts and isinstance(value, int | float) and value == 0
    return float in parts and Mark.STATIC not in parts and not is_off


_register(TrainSettings)
