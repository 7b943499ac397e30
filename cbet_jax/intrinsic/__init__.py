"""The methods by name. This table is the only place that knows them by name."""

import difflib
from collections.abc import Callable

from cbet_jax.config import SettingsError, TrainSettings
from cbet_jax.intrinsic.cbet import cbet
from cbet_jax.intrinsic.types import Intrinsic

METHODS: dict[str, Callable[[TrainSettings], Intrinsic]] = {
    "cbet": lambda settings: cbet(settings.counts),
}


def make_intrinsic(settings: TrainSettings) -> Intrinsic:
    """Returns the method that `settings` name.

    Raises:
        SettingsError: there is no such method; the message names the nearest ones.
    """
    if settings.method not in METHODS:
        near = difflib.get_close_matches(settings.method, METHODS, n=3, cutoff=0) or METHODS
        raise SettingsError(f"unknown method {settings.method!r}; nearest: {', '.join(near)}")
    return METHODS[settings.method](settings)
