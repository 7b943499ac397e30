"""The method contract, checked with readable messages.

A method sees random walks through distinct places, with ends of episodes and successes. No
simulator is needed, and the checks take seconds; only the last one trains.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from cbet_jax import own_code
from cbet_jax.config import AuxiliarySettings, CountSettings, TrainSettings
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.method_check import contract, shapes
from cbet_jax.method_check.walk import Subject, Walk
from cbet_jax.settings.ranges import SettingsError
from envs.errors import Check, ContractError, checked
from envs.types import Step

SHAPES, RESETS, REACHES = "shapes and types", "resets leave no trace", "learns in a corridor"
CHECKS: dict[str, Callable[[Subject], None]] = {
    SHAPES: contract.check_shapes,
    "one trace": contract.check_traces,
    "finite": contract.check_finite,
    "same key, same numbers": contract.check_same_key,
    "adapt keeps what is learnt": contract.check_adapt,
    "adapt agrees on all devices": contract.check_devices,
    "every network learns": contract.check_gradients,
    "no look ahead": contract.check_look_ahead,
    "actors are separate": contract.check_actors,
    "panoramas as said": contract.check_panoramas,
    RESETS: contract.check_resets,
    REACHES: contract.check_reach,
}


def check_settings(method: str, own: tuple[str, ...] = ()) -> TrainSettings:
    """Return the settings that a method is checked with: small networks, small count tables."""
    return TrainSettings(
        method=method,
        own=own,
        auxiliary=AuxiliarySettings(channels=(8, 16), hidden_units=32),
        counts=CountSettings(capacity=1024),
    )


def check_method(
    settings: TrainSettings, *, lasting: bool = False, learns: bool = True
) -> Iterator[Check]:
    """Check the method that the settings name; yield one result per check.

    Args:
        settings: those of `check_settings`.
        lasting: a part of the memory is meant to outlive episodes: do not check resets.
        learns: also train with it in a corridor, which takes longest.

    Raises:
        SettingsError: the method is unknown, or refuses the settings.
    """
    subject = Subject(settings)
    skipped = {} if learns else {REACHES: "left out"}
    if lasting:
        skipped[RESETS] = "its memory outlives episodes"
    if jnp.all(subject.method.coefficient == 0):
        skipped[REACHES] = "the reward has coefficient 0"
    for name, check in CHECKS.items():
        if name in skipped:
            yield Check(name, skipped=skipped[name])
            continue
        found = checked(name, partial(check, subject), SettingsError)
        if name == SHAPES and found.problem:  # nothing else can be tried
            skipped = dict.fromkeys(CHECKS, "shapes and types must be right first")
        yield found


def refuse_misfit(
    settings: TrainSettings, init: Callable[..., tuple[Any, Step]], num_actions: int
) -> None:
    """Refuse own code whose functions do not fit a world, given by its `init`, before it is played.

    Raises:
        SettingsError: a shape or a type is wrong, or a function cannot be compiled.
    """
    if not own_code.is_own(settings.method):
        return
    _, first = jax.eval_shape(init, jax.random.key(0))
    action = jax.ShapeDtypeStruct(first.reward.shape, jnp.int32)
    later = lambda leaf: jax.ShapeDtypeStruct((settings.unroll, *leaf.shape), leaf.dtype)  # noqa: E731
    walk = Walk(first, *jax.tree.map(later, (first, action)))
    try:
        with jax.ensure_compile_time_eval():  # the caller may be traced, and a method holds arrays
            method = make_intrinsic(settings, num_actions)
        for batch in (settings.batch, settings.batch + 1):  # devices may share a batch
            shapes.compare_shapes(method, walk, batch, num_actions)
    except ContractError as error:
        raise SettingsError(f"{own_code.plain(settings.method)}: {error}") from None
