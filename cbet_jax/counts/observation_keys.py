"""How observations are identified: by exact value, or by a ternary hash code (images only).

Observations with equal keys are counted together. A key is a hash of 64 bits, `[lanes]`. Changes
are identified likewise, as the difference of an observation and the one before it.
"""

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
from envs.barrier import materialize

Observations = Integer[Array, "N ..."]  # one of each actor
ACTORS_AT_ONCE = 8  # encoded side by side: 100 panoramas of each are 160 MB as float32


class ExactState(NamedTuple):
    """State of the exact keys. All actors share one hash."""

    hash: LinearHash
    #: subtracted from the next linear hash: the last observation's for changes, else zeros
    origin: UInt32[Array, "N lanes"]


class TernaryState(NamedTuple):
    """State of the ternary keys."""

    codes: TernaryCode  # arrays [N, ...], or [1, ...] if all actors share one code
    hash: LinearHash  # hash of the codes' entries
    #: subtracted from the next observation: the last one for changes, else zeros
    origin: Integer[Array, "N numbers"]


KeyState = ExactState | TernaryState


class KeyMaker(NamedTuple):
    """Pure functions that make the keys of all actors' observations, and carry a state."""

    init: Callable[[PRNGKeyArray, Observations], KeyState]  # takes the first observations
    #: observations [T, N, ...] in the order of time -> keys [T, N, lanes]
    make: Callable[[Any, Integer[Array, "T N ..."]], tuple[KeyState, UInt32[Array, "T N lanes"]]]


def key_maker(settings: CountSettings, *, of_changes: bool) -> KeyMaker:
    """Return the key maker that the settings name, for observations or their changes."""
    if settings.keys == "ternary":
        return ternary_keys(settings, of_changes=of_changes)
    return exact_keys(of_changes=of_changes)


def exact_keys(*, of_changes: bool) -> KeyMaker:
    """Return keys which are equal for equal observations, or equal changes."""

    def init(key: PRNGKeyArray, observations: Observations) -> ExactState:
        hash_ = hashing.make_linear_hash(key, observations[0].size)
        lanes = _linear_hash(hash_, observations[None])[0]
        return ExactState(hash_, lanes if of_changes else jnp.zeros_like(lanes))

    def make(
        state: ExactState, observations: Integer[Array, "T N ..."]
    ) -> tuple[ExactState, UInt32[Array, "T N lanes"]]:
        lanes = _linear_hash(state.hash, observations)
        before = jnp.concatenate([state.origin[None], lanes[:-1]]) if of_changes else state.origin
        keys = jax.vmap(jax.vmap(hashing.finish))(lanes - before)
        return state._replace(origin=lanes[-1] if of_changes else state.origin), keys

    return KeyMaker(init, make)


def ternary_keys(settings: CountSettings, *, of_changes: bool) -> KeyMaker:
    """Return keys which are equal for equal ternary codes of images, or of changes.

    Each actor draws its own code, unless the actors share their counts. Most of the time goes into
    reading the code's projection from memory (25 MB for a panorama), once for a whole rollout.
    """

    def init(key: PRNGKeyArray, observations: Observations) -> TernaryState:
        code_key, hash_key = jax.random.split(key)
        numbers = observations.reshape(len(observations), -1)
        code_keys = jax.random.split(code_key, 1 if settings.shared else len(observations))

        def draw(key: PRNGKeyArray) -> TernaryCode:
            return ternary_code.make_ternary_code(key, numbers.shape[1], settings.offsets)

        return TernaryState(
            codes=jax.vmap(draw)(code_keys),
            hash=hashing.make_linear_hash(hash_key, ternary_code.ENTRIES),
            origin=numbers if of_changes else jnp.zeros_like(numbers),
        )

    def make(
        state: TernaryState, observations: Integer[Array, "T N ..."]
    ) -> tuple[TernaryState, UInt32[Array, "T N lanes"]]:
        numbers = observations.reshape(*observations.shape[:2], -1)
        numbers = jnp.moveaxis(numbers, 1, 0)  # [N, T, numbers]

        def encode(actor: tuple[TernaryCode, Array, Array]) -> Array:
            code, numbers, origin = actor
            before = jnp.concatenate([origin[None], numbers[:-1]]) if of_changes else origin
            changes = numbers.astype(jnp.int32) - before.astype(jnp.int32)
            return jax.vmap(partial(ternary_code.encode, code))(changes)

        actors = _codes(state), numbers, state.origin
        encoded = jax.lax.map(encode, actors, batch_size=ACTORS_AT_ONCE)
        keys = jax.vmap(jax.vmap(hashing.finish))(_linear_hash(state.hash, encoded))
        after = state._replace(origin=numbers[:, -1] if of_changes else state.origin)
        return after, jnp.moveaxis(keys, 0, 1)

    return KeyMaker(init, make)


def _codes(state: TernaryState) -> TernaryCode:
    """Return the code of each actor, arrays [N, ...]."""
    actors = len(state.origin)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (actors, *leaf.shape[1:])), state.codes)


def _linear_hash(
    hash_: LinearHash, observations: Integer[Array, "T N ..."]
) -> UInt32[Array, "T N lanes"]:
    numbers = jnp.moveaxis(observations.reshape(*observations.shape[:2], -1), -1, 0)
    return materialize(jnp.moveaxis(hashing.linear(hash_, numbers), 0, -1))
