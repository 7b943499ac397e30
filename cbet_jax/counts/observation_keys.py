"""Keys: which observations, or changes from one to the next, are counted as the same."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Integer, PRNGKeyArray, UInt32

from cbet_jax.config import CountSettings
from cbet_jax.counts import hashing, ternary_code
from cbet_jax.counts.hashing import LinearHash
from cbet_jax.counts.ternary_code import TernaryCode

Seen = Integer[Array, "N ..."]  # an observation of each actor
ACTORS_AT_ONCE = 8  # whose sequences are encoded side by side: 160 MB of 100 panoramas each


class Keys(NamedTuple):
    """How observations become keys: pure functions of all actors' observations."""

    begin: Callable[[PRNGKeyArray, Seen], Any]  # the state before the first key
    make: Callable[[Any, Seen], tuple[Any, UInt32[Array, "N lanes"]]]
    # of observations [T, N, ...] in the order of time; None: one after the other costs no more
    make_all: Callable[[Any, Integer[Array, "T N ..."]], Any] | None = None


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

    Each actor draws a code of its own, unless the actors share what they count. Most of a key's
    cost is to read the code's projection (32 MB for a panorama), so that the keys of a whole
    sequence cost a fraction of what they do one by one.
    """

    def begin(key: PRNGKeyArray, seen: Seen) -> TernaryState:
        code_key, hash_key = jax.random.split(key)
        numbers = seen.reshape(len(seen), -1)
        code_keys = jax.random.split(code_key, 1 if settings.shared else len(seen))
        draw = lambda key: ternary_code.make_ternary_code(key, numbers.shape[1], settings.offsets)  # noqa: E731
        return TernaryState(
            codes=jax.vmap(draw)(code_keys),
            hash=hashing.make_linear_hash(hash_key, ternary_code.ENTRIES),
            origin=numbers if of_changes else jnp.zeros_like(numbers),
        )

    def make(state: TernaryState, seen: Seen) -> tuple[TernaryState, UInt32[Array, "N lanes"]]:
        numbers = seen.reshape(len(seen), -1)
        encoded = jax.vmap(ternary_code.encode)(_codes(state), _difference(numbers, state.origin))
        keys = jax.vmap(hashing.finish)(_lanes(state.hash, encoded))
        return state._replace(origin=numbers if of_changes else state.origin), keys

    def make_all(
        state: TernaryState, seen: Integer[Array, "T N ..."]
    ) -> tuple[TernaryState, UInt32[Array, "T N lanes"]]:
        numbers = jnp.moveaxis(seen.reshape(*seen.shape[:2], -1), 1, 0)  # [N, T, ...]

        def encode(actor: tuple[TernaryCode, Array, Array]) -> Array:
            code, numbers, origin = actor
            before = jnp.concatenate([origin[None], numbers[:-1]]) if of_changes else origin
            return jax.vmap(partial(ternary_code.encode, code))(_difference(numbers, before))

        actors = _codes(state), numbers, state.origin
        encoded = jax.lax.map(encode, actors, batch_size=ACTORS_AT_ONCE)
        lanes = _lanes(state.hash, encoded.reshape(-1, encoded.shape[-1]))
        keys = jax.vmap(hashing.finish)(lanes).reshape(*encoded.shape[:2], -1)
        last = state._replace(origin=numbers[:, -1] if of_changes else state.origin)
        return last, jnp.moveaxis(keys, 0, 1)

    return Keys(begin, make, make_all)


def _codes(state: TernaryState) -> TernaryCode:
    """Returns the code of each actor, arrays [N, ...]."""
    actors = len(state.origin)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (actors, *leaf.shape[1:])), state.codes)


def _difference(numbers: Integer[Array, "*T"], before: Integer[Array, "..."]) -> Array:
    return numbers.astype(jnp.int32) - before.astype(jnp.int32)


def _lanes(hash_: LinearHash, seen: Seen) -> UInt32[Array, "N lanes"]:
    lanes = hashing.linear(hash_, jnp.moveaxis(seen, 0, -1)).T
    return jax.lax.optimization_barrier(lanes)  # or every use of them would hash again
