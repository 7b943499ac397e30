"""C-BET: rare states and rare changes of the world (paper, equation 1)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt32

from cbet_jax import counts, hashing
from cbet_jax.config import CountSettings
from cbet_jax.counts import CountTable
from cbet_jax.hashing import LinearHash
from cbet_jax.intrinsic.types import Intrinsic
from cbet_jax.types import Trajectory
from envs.types import Step


class CbetMemory(NamedTuple):
    """What each actor has counted."""

    state_hash: LinearHash  # shared by all actors, as is the next
    change_hash: LinearHash
    states: CountTable  # arrays [N, ...]
    changes: CountTable  # arrays [N, ...]
    panorama_lanes: UInt32[Array, "N lanes"]  # linear hash of the last panorama


class CbetSignal(NamedTuple):
    """The counts of one step, this visit included."""

    state_count: UInt32[Array, " N"]  # N(s')
    change_count: UInt32[Array, " N"]  # N(c)


def cbet(settings: CountSettings) -> Intrinsic:
    """Returns the C-BET method: reward 1 / (N(s') + N(c)), counts reset at random.

    s' is hashed from the egocentric view, c from the difference of two panoramas. Both
    tables are incremented first, then read, then forgotten with probability p, each by
    itself. When a sequence starts, the current view is counted once more, and both coins
    are tossed once more, as in the published code.
    """

    def init(key: PRNGKeyArray, step: Step) -> tuple[tuple[()], CbetMemory]:
        state_key, change_key = jax.random.split(key)
        actors = step.view.shape[0]
        change_hash = hashing.make_linear_hash(change_key, step.panorama[0].size)
        memory = CbetMemory(
            state_hash=hashing.make_linear_hash(state_key, step.view[0].size),
            change_hash=change_hash,
            states=counts.empty_tables(actors, settings.capacity),
            changes=counts.empty_tables(actors, settings.capacity),
            panorama_lanes=_lanes(change_hash, step.panorama),
        )
        return (), memory

    def begin(memory: CbetMemory, key: PRNGKeyArray, step: Step) -> CbetMemory:
        states, _ = _visit(memory.states, _lanes(memory.state_hash, step.view))
        return _forget(memory._replace(states=states), key, settings.reset_probability)

    def observe(memory: CbetMemory, key: PRNGKeyArray, step: Step) -> tuple[CbetMemory, CbetSignal]:
        panorama_lanes = _lanes(memory.change_hash, step.panorama)
        states, state_count = _visit(memory.states, _lanes(memory.state_hash, step.view))
        changes, change_count = _visit(memory.changes, panorama_lanes - memory.panorama_lanes)
        memory = memory._replace(states=states, changes=changes, panorama_lanes=panorama_lanes)
        memory = _forget(memory, key, settings.reset_probability)
        return memory, CbetSignal(state_count, change_count)

    return Intrinsic("cbet", init, begin, observe, reward, no_loss, report)


def reward(params: tuple[()], trajectory: Trajectory) -> Float[Array, "T N"]:
    """Returns 1 / (N(s') + N(c)) (paper, equation 1)."""
    signal: CbetSignal = trajectory.signal
    return 1.0 / (signal.state_count + signal.change_count).astype(jnp.float32)


def no_loss(params: tuple[()], trajectory: Trajectory) -> Float[Array, ""]:
    """Returns zero: counting has nothing to learn."""
    return jnp.zeros(())


def report(memory: CbetMemory) -> dict[str, Float[Array, ""]]:
    """Returns the visits that found no room in the tables."""
    overflow = memory.states.overflow.sum() + memory.changes.overflow.sum()
    return {"count_overflow": overflow.astype(jnp.float32)}


def _lanes(hash_: LinearHash, observations: Array) -> UInt32[Array, "N lanes"]:
    lanes = jax.vmap(lambda observation: hashing.linear(hash_, observation))(observations)
    return jax.lax.optimization_barrier(lanes)  # or every use of them would hash again


def _visit(
    tables: CountTable, lanes: UInt32[Array, "N lanes"]
) -> tuple[CountTable, UInt32[Array, " N"]]:
    keys = jax.vmap(hashing.finish)(lanes)
    return jax.vmap(counts.visit)(tables, keys)


def _forget(memory: CbetMemory, key: PRNGKeyArray, probability: float) -> CbetMemory:
    """Tosses a coin for each table of each actor."""
    coins = jax.random.bernoulli(key, probability, (2, memory.states.generation.shape[0]))
    return memory._replace(
        states=jax.vmap(counts.reset)(memory.states, coins[0]),
        changes=jax.vmap(counts.reset)(memory.changes, coins[1]),
    )
