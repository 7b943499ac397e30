"""Rewards made of visit counts: the memory that C-BET, Count, RIDE and the ablation share."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray, UInt32

from cbet_jax import counts
from cbet_jax.config import CountSettings
from cbet_jax.counts import CountTable
from cbet_jax.intrinsic.keys import Keys, make_keys
from cbet_jax.intrinsic.none import none
from cbet_jax.intrinsic.types import Intrinsic, Metrics, Params
from cbet_jax.types import Trajectory
from envs.types import Step

COEFFICIENT = 0.005  # of rewards made of counts alone (paper, appendix "hyperparameters")
RESET_PROBABILITY = 0.001  # p, of the rewards with random resets (same place)
CAPACITY = 2**14  # slots for what is soon forgotten
LASTING_CAPACITY = 2**18  # for what is not: in MultiEnv, 300,000 random steps meet 27,000 states

STATES, CHANGES = "states", "changes"  # what can be counted


class CountReward(NamedTuple):
    """A reward that depends on counts alone."""

    counts: tuple[str, ...]  # STATES, CHANGES or both
    formula: Callable[..., Float[Array, "T N"]]  # of those counts, as floats, in that order


class Tally(NamedTuple):
    """How often each actor has met each thing of one kind."""

    keys: Any  # what the keys are made with
    tables: CountTable  # arrays [N, ...], or [1, ...] if all actors share one table


Tallies = dict[str, Tally]  # STATES, CHANGES or both
Counted = dict[str, UInt32[Array, " N"]]  # the counts of one step, this visit included

# Which tables to forget now: key, step, shape of the answer -> bool.
ForgetRule = Callable[[PRNGKeyArray, Step, tuple[int, int]], Bool[Array, "kinds tables"]]


def at_random(probability: float) -> ForgetRule:
    """Returns the rule that tosses a coin for each table (paper, section 3.2)."""
    return lambda key, _, shape: jax.random.bernoulli(key, probability, shape)


def counting_with_resets(
    name: str, reward: CountReward, settings: CountSettings, probability: float
) -> Intrinsic:
    """Returns a method that rewards by what it counts, and forgets at random.

    Args:
        name: of the method.
        reward: what is counted, and what that is worth.
        settings: of the tables.
        probability: that a table is cleared at a step, unless the settings say another.
    """
    if not settings.random_resets:
        probability = 0.0
    if settings.reset_probability is not None:
        probability = settings.reset_probability
    fills_up = probability == 0 or settings.shared
    capacity = LASTING_CAPACITY if fills_up else CAPACITY
    return counting(name, reward, settings, at_random(probability), capacity)


def counting(
    name: str,
    reward: CountReward,
    settings: CountSettings,
    forget: ForgetRule,
    capacity: int = CAPACITY,
) -> Intrinsic:
    """Returns a method that rewards by what it counts.

    A state is a view, a change the difference of two. All tables are incremented first, then
    read, then forgotten where the rule says so. When a sequence starts, the current
    view is counted once more (as a state only) and the rule is asked once more, as in the
    published code. If the actors share a table, they visit it one after the other, and it is
    forgotten as one.

    Args:
        name: of the method.
        reward: what is counted, and what that is worth.
        settings: of the tables.
        forget: when a table is cleared.
        capacity: slots in a table, unless the settings say another number.
    """
    kinds, capacity = reward.counts, settings.capacity or capacity
    keys_of = {kind: make_keys(settings, of_changes=kind == CHANGES) for kind in kinds}

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, Tallies]:
        tables = 1 if settings.shared else len(step.view)
        keys = jax.random.split(key, len(kinds))
        return Params({}, {}), {
            kind: Tally(
                keys=keys_of[kind].begin(key, _seen(kind, step, settings)),
                tables=counts.empty_tables(tables, capacity),
            )
            for kind, key in zip(kinds, keys, strict=True)
        }

    def visit(tallies: Tallies, kind: str, step: Step) -> tuple[Tally, UInt32[Array, " N"]]:
        return _visit(tallies[kind], keys_of[kind], _seen(kind, step, settings))

    def begin(tallies: Tallies, key: PRNGKeyArray, step: Step) -> Tallies:
        if STATES in kinds:
            tallies = {**tallies, STATES: visit(tallies, STATES, step)[0]}
        return clear(tallies, key, step)

    def observe(tallies: Tallies, key: PRNGKeyArray, step: Step) -> tuple[Tallies, Counted]:
        visited = {kind: visit(tallies, kind, step) for kind in kinds}
        tallies = {kind: tally for kind, (tally, _) in visited.items()}
        return clear(tallies, key, step), {kind: count for kind, (_, count) in visited.items()}

    def clear(tallies: Tallies, key: PRNGKeyArray, step: Step) -> Tallies:
        shape = len(kinds), tallies[kinds[0]].tables.generation.shape[0]
        now = forget(key, step, shape)
        return {kind: _forget(tallies[kind], now[i]) for i, kind in enumerate(kinds)}

    def worth(params: Params, trajectory: Trajectory) -> Float[Array, "T N"]:
        return reward.formula(*(trajectory.signal[kind].astype(jnp.float32) for kind in kinds))

    return none()._replace(
        name=name,
        coefficient=COEFFICIENT,
        init=init,
        begin=begin,
        observe=observe,
        reward=worth,
        report=report,
    )


def report(tallies: Tallies) -> Metrics:
    """Returns the visits that found no room in the tables."""
    overflow = sum(tally.tables.overflow.sum() for tally in tallies.values())
    return {"count_overflow": jnp.asarray(overflow, jnp.float32)}


def _seen(kind: str, step: Step, settings: CountSettings) -> Integer[Array, "N ..."]:
    view = settings.states if kind == STATES else settings.changes
    return step.view if view == "egocentric" else step.panorama


def _visit(
    tally: Tally, keys: Keys, seen: Integer[Array, "N ..."]
) -> tuple[Tally, UInt32[Array, " N"]]:
    state, lanes = keys.make(tally.keys, seen)
    tables, count = _visit_tables(tally.tables, lanes)
    return Tally(state, tables), count


def _forget(tally: Tally, now: Bool[Array, " tables"]) -> Tally:
    return tally._replace(tables=jax.vmap(counts.reset)(tally.tables, now))


def _visit_tables(
    tables: CountTable, keys: UInt32[Array, "N lanes"]
) -> tuple[CountTable, UInt32[Array, " N"]]:
    if tables.generation.shape[0] == keys.shape[0]:
        return jax.vmap(counts.visit)(tables, keys)
    shared = jax.tree.map(lambda leaf: leaf[0], tables)
    shared, count = jax.lax.scan(counts.visit, shared, keys)
    return jax.tree.map(lambda leaf: leaf[None], shared), count
