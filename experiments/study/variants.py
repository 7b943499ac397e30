"""What a study compares: methods with settings of their own, and worlds to pre-train in."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from cbet_jax import own_code
from cbet_jax.config import RESET_PROBABILITY, SettingsError
from envs.errors import did_you_mean


class Variant(NamedTuple):
    """A method, and the settings in which it differs from the preset."""

    method: str
    counts: Mapping[str, Any] = MappingProxyType({})  # fields of `CountSettings`
    worlds: int | None = None  # actors

    @property
    def plain(self) -> bool:
        """Whether it differs in nothing but the method."""
        return not self.counts and self.worlds is None

    @property
    def words(self) -> tuple[str, ...]:
        """The words of a training command's line that choose this variant."""
        words = ["--method", own_code.given(self.method)]
        for name, value in self.counts.items():
            option = name.replace("_", "-")
            if isinstance(value, bool):
                words.append(f"--counts.{option}" if value else f"--counts.no-{option}")
            else:
                words += [f"--counts.{option}", str(value)]
        words += ["--worlds", str(self.worlds)] if self.worlds else []
        return tuple(words)


RESETS = {"reset_probability": RESET_PROBABILITY}
REWARDS = ("product", "sum", "sum-squared", "sum-inside", "changes")  # of the ablation

VARIANTS: dict[str, Variant] = {
    # The paper's methods.
    **{name: Variant(name) for name in ("cbet", "count", "ride", "curiosity", "rnd")},
    # With and without resets, and what else may drive the order of methods.
    "count-resets": Variant("count", RESETS),
    "cbet-no-resets": Variant("cbet", {"random_resets": False}),
    "count-shared": Variant("count", {"shared": True}),
    "cbet-shared": Variant("cbet", {"shared": True}),
    "count-16-actors": Variant("count", worlds=16),
    "cbet-16-actors": Variant("cbet", worlds=16),
    # The ablation: state-only rewards, combinations, and egocentric changes.
    "states-squared": Variant("ablation-states-squared"),
    "count-resets-panoramic": Variant("count", {**RESETS, "states": "panoramic"}),
    "states-squared-panoramic": Variant("ablation-states-squared", {"states": "panoramic"}),
    **{name: Variant(f"ablation-{name}") for name in REWARDS},
    "cbet-egocentric": Variant("cbet", {"changes": "egocentric"}),
    **{
        f"{name}-egocentric": Variant(f"ablation-{name}", {"changes": "egocentric"})
        for name in REWARDS
    },
}

SETUPS: dict[str, tuple[str, ...]] = {
    "MultiEnv": ("MultiRoom-N4-S5", "KeyCorridorS3R3", "BlockedUnlockPickup"),
    "DoorKey": ("DoorKey-8x8",),
    "KeyCorridor": ("KeyCorridorS3R3",),
    "MultiRoom": ("MultiRoom-N7-S4",),
    "NoisyTV": ("MultiRoomNoisyTV-N7-S4",),
}


def variant(name: str) -> Variant:
    """Return the variant of that name, or else the method of that name."""
    return VARIANTS.get(name) or Variant(name)


def method_names() -> tuple[str, ...]:
    """Return the names that `variant` knows, also of loaded methods of one's own."""
    from cbet_jax.intrinsic import METHODS  # imported here: it takes seconds

    return tuple(dict.fromkeys((*VARIANTS, *METHODS)))


def check_names(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse an unknown name, or one given twice."""
    names, known = list(names), list(known)
    for name in names:
        if name not in known:
            raise SettingsError(f"unknown {kind} {name!r}; {did_you_mean(name, known)}")
        if names.count(name) > 1:
            raise SettingsError(f"{kind} {name!r} is named twice")
