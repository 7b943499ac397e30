"""The intrinsic-reward methods by name. Only these tables know the names.

A method is a function of the settings and the number of actions. `cbet_jax.intrinsic.own` adds
those that a command line names by their files.
"""

from collections.abc import Callable
from functools import partial

from cbet_jax import own_code
from cbet_jax.config import SettingsError, TrainSettings
from cbet_jax.intrinsic.ablation import REWARDS as ABLATION
from cbet_jax.intrinsic.ablation import ablation
from cbet_jax.intrinsic.cbet import REWARD as CBET
from cbet_jax.intrinsic.cbet import cbet
from cbet_jax.intrinsic.count import REWARD as COUNT
from cbet_jax.intrinsic.count import count
from cbet_jax.intrinsic.count_based import CountReward
from cbet_jax.intrinsic.curiosity import curiosity
from cbet_jax.intrinsic.e3b import e3b
from cbet_jax.intrinsic.interface import Intrinsic
from cbet_jax.intrinsic.ngu_episodic import ngu_episodic
from cbet_jax.intrinsic.none import none
from cbet_jax.intrinsic.noveld import noveld
from cbet_jax.intrinsic.re3 import re3
from cbet_jax.intrinsic.ride import ride
from cbet_jax.intrinsic.rnd import rnd
from cbet_jax.intrinsic.rnd_normalized import rnd_normalized
from envs.errors import did_you_mean

#: name -> function of the settings and the number of actions
METHODS: dict[str, Callable[[TrainSettings, int], Intrinsic]] = {
    "cbet": cbet,
    "count": count,
    "rnd": rnd,
    "curiosity": curiosity,
    "ride": ride,
    "none": none,
    "noveld": noveld,
    "e3b": e3b,
    "ngu-episodic": ngu_episodic,
    "re3": re3,
    "rnd-normalized": rnd_normalized,
    **{name: partial(ablation, name) for name in ABLATION},
}

# The rewards that need nothing but visit counts.
COUNT_REWARDS: dict[str, CountReward] = {"cbet": CBET, "count": COUNT, **ABLATION}


def refuse_unnamed(name: str) -> None:
    """Refuse a run whose method is a file, which is code, unless a command line has named it.

    Raises:
        SettingsError: `cbet_jax.intrinsic.own` has not loaded it.
    """
    if own_code.is_own(name) and name not in METHODS:
        raise SettingsError(
            f"the run's method is a file, {name}, which is code: if you trust it, "
            f"add --method {own_code.plain(name)}, with the path of its file"
        )


def make_intrinsic(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return the method that the settings name, with their coefficient if they set one.

    Raises:
        SettingsError: the method is unknown (the message names similar ones), or does not
            support these settings.
    """
    if settings.method not in METHODS:
        name = settings.method
        refuse_unnamed(name)
        raise SettingsError(f"unknown method {name!r}; {did_you_mean(name, METHODS)}")
    if settings.own and not own_code.is_own(settings.method):
        raise SettingsError(f"{settings.method} has no settings of its own: leave --own out")
    method = METHODS[settings.method](settings, num_actions)
    if settings.intrinsic_coefficient is None:
        return method
    return method._replace(coefficient=settings.intrinsic_coefficient)
