"""The methods by name. This table is the only place that knows them by name."""

import difflib
from collections.abc import Callable

from cbet_jax.config import SettingsError, TrainSettings
from cbet_jax.intrinsic.ablation import REWARDS, ablation
from cbet_jax.intrinsic.cbet import cbet
from cbet_jax.intrinsic.count import count
from cbet_jax.intrinsic.count_based import Extent
from cbet_jax.intrinsic.curiosity import curiosity
from cbet_jax.intrinsic.none import none
from cbet_jax.intrinsic.ride import ride
from cbet_jax.intrinsic.rnd import rnd
from cbet_jax.intrinsic.types import Intrinsic

Maker = Callable[[TrainSettings, int], Intrinsic]  # of settings and the number of actions


def _ablation(name: str) -> Maker:
    return lambda settings, _: ablation(name, settings.counts, _extent(settings))


def _extent(settings: TrainSettings) -> Extent:
    return Extent(settings.worlds, -(-settings.frames // settings.worlds))


METHODS: dict[str, Maker] = {
    "cbet": lambda settings, _: cbet(settings.counts, _extent(settings)),
    "count": lambda settings, _: count(settings.counts, _extent(settings)),
    "rnd": lambda settings, _: rnd(settings.auxiliary),
    "curiosity": lambda settings, actions: curiosity(settings.auxiliary, actions),
    "ride": lambda settings, actions: ride(settings.counts, settings.auxiliary, actions),
    "none": lambda *_: none(),
    **{name: _ablation(name) for name in REWARDS},
}


def make_intrinsic(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Returns the method that `settings` name, with the coefficient that they set.

    Raises:
        SettingsError: there is no such method, the message names the nearest ones; or the
            method cannot be had with these settings.
    """
    if settings.method not in METHODS:
        near = difflib.get_close_matches(settings.method, METHODS, n=3, cutoff=0) or METHODS
        raise SettingsError(f"unknown method {settings.method!r}; nearest: {', '.join(near)}")
    method = METHODS[settings.method](settings, num_actions)
    if settings.intrinsic_coefficient is None:
        return method
    return method._replace(coefficient=settings.intrinsic_coefficient)
