"""Keys: which observations, or changes from one to the next, are counted as the same."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Integer, PRNGKeyArray, UInt32

from cbet_jax import hashing, ternary
from cbet_jax.config import CountSettings
from cbet_jax.hashing import LinearHash
from cbet_jax.ternary import TernaryCode

Seen = Integer[Array, "N ..."]  # an observation of each actor


class Keys(NamedTuple):
    """How observations become keys: pure functions of all actors' observations."""

    begin: Callable[[PRNGKeyArray, Seen], Any]  # the state before the first key
    make: Callable[[Any, Seen], tuple[Any, UInt32[Array, "N lanes"]]]


class ExactState(NamedTuple):
    """A hash that all actors share."""

    hash: LinearHash
    origin: UInt32[Array, "N lanes"]  # linear hash that the next one is taken from: the last
    # observation's where changes are counted, zeros where states are


class TernaryState(NamedTuple):
    """A code for each actor, and a hash of codes."""

    codes: TernaryCode  # arrays [N, ...], or [1, ...] if the actors share one
    hash: LinearHash
    origin: Integer[Array, "N numbers"]  # what the next observation is taken from


def make_keys(settings: CountSettings, *, of_changes: bool) -> Keys:
    """Returns the keys that the settings ask for, of observations or of their differences."""
    if settings.keys == "ternary":
        return ternary_keys(settings, of_changes=of_changes)
    return exact_keys(of_changes=of_changes)


def exact_keys(*, of_changes: bool) -> Keys:
    """Returns keys that are equal where the observations, or their differences, are."""

    def begin(key: PRNGKeyArray, seen: Seen) -> ExactState:
        hash_ = hashing.make_linear_hash(key, seen[0].size)
        lanes = _lanes(hash_, seen)
        return ExactState(hash_, lanes if of_changes else jnp.zeros_like(lanes))

    def make(state: ExactState, seen: Seen) -> tuple[ExactState, UInt32[Array, "N lanes"]]:
        lanes = _lanes(state.hash, seen)
        keys = jax.vmap(hashing.finish)(lanes - state.origin)
        return state._replace(origin=lanes if of_changes else state.origin), keys

    return Keys(begin, make)


def ternary_keys(settings: CountSettings, *, of_changes: bool) -> Keys:
    """Returns keys that are equal where the ternary codes are.

    Each actor draws a code of its own, unless the actors share what they count.
    """

    def begin(key: PRNGKeyArray, seen: Seen) -> TernaryState:
        code_key, hash_key = jax.random.split(key)
        numbers = seen.reshape(len(seen), -1)
        code_keys = jax.random.split(code_key, 1 if settings.shared else len(seen))
        draw = lambda key: ternary.make_ternary_code(key, numbers.shape[1], settings.offsets)  # noqa: E731
        return TernaryState(
            codes=jax.vmap(draw)(code_keys),
            hash=hashing.make_linear_hash(hash_key, ternary.ENTRIES),
            origin=numbers if of_changes else jnp.zeros_like(numbers),
        )

    def make(state: TernaryState, seen: Seen) -> tuple[TernaryState, UInt32[Array, "N lanes"]]:
        numbers = seen.reshape(len(seen), -1)
        difference = numbers.astype(jnp.int32) - state.origin.astype(jnp.int32)
        by_actor = 0 if len(state.codes.offsets) == len(seen) else None
        codes = state.codes if by_actor == 0 else jax.tree.map(lambda leaf: leaf[0], state.codes)
        encoded = jax.vmap(ternary.encode, in_axes=(by_actor, 0))(codes, difference)
        keys = jax.vmap(hashing.finish)(_lanes(state.hash, encoded))
        return state._replace(origin=numbers if of_changes else state.origin), keys

    return Keys(begin, make)


def _lanes(hash_: LinearHash, seen: Seen) -> UInt32[Array, "N lanes"]:
    lanes = hashing.linear(hash_, jnp.moveaxis(seen, 0, -1)).T
    return jax.lax.optimization_barrier(lanes)  # or every use of them would hash again
