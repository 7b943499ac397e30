"""Rewards made of visit counts: the memory that C-BET, Count, RIDE and the ablation share."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, Key, PRNGKeyArray, UInt32

from cbet_jax.config import CountSettings
from cbet_jax.counts import table
from cbet_jax.counts.observation_keys import Keys, make_keys
from cbet_jax.counts.table import CountTable
from cbet_jax.intrinsic.none import none
from cbet_jax.intrinsic.types import Intrinsic, Metrics, Params
from cbet_jax.types import Trajectory
from envs.types import Step

COEFFICIENT = 0.005  # of rewards made of counts alone (paper, appendix "hyperparameters")
RESET_PROBABILITY = 0.001  # p, of the rewards with random resets (same place)
CAPACITY = 2**14  # slots for what is soon forgotten
LASTING_CAPACITY = 2**18  # for what is not, at least
MOST_CAPACITY = 2**26  # slots that no table has more of, unless it is told to

STATES, CHANGES = "states", "changes"  # what can be counted


class Extent(NamedTuple):
    """How much a run counts."""

    actors: int = 1
    steps: int = 0  # of each


SHORT = Extent()


class CountReward(NamedTuple):
    """A reward that depends on counts alone."""

    counts: tuple[str, ...]  # STATES, CHANGES or both
    formula: Callable[..., Float[Array, "T N"]]  # of those counts, as floats, in that order


class Tally(NamedTuple):
    """How often each actor has met each thing of one kind."""

    keys: Any  # what the keys are made with
    tables: CountTable  # arrays [N, ...], or [1, ...] if all actors share one table


Tallies = dict[str, Tally]  # STATES, CHANGES or both
Tables = dict[str, CountTable]
Counted = dict[str, UInt32[Array, " N"]]  # the counts of one step, this visit included

# Which tables to forget now: key, step, shape of the answer -> bool.
ForgetRule = Callable[[PRNGKeyArray, Step, tuple[int, int]], Bool[Array, "kinds tables"]]


def at_random(probability: float) -> ForgetRule:
    """Returns the rule that tosses a coin for each table (paper, section 3.2)."""
    return lambda key, _, shape: jax.random.bernoulli(key, probability, shape)


def counting_with_resets(
    name: str, reward: CountReward, settings: CountSettings, extent: Extent, probability: float
) -> Intrinsic:
    """Returns a method that rewards by what it counts, and forgets at random.

    Args:
        name: of the method.
        reward: what is counted, and what that is worth.
        settings: of the tables.
        extent: of what they count.
        probability: that a table is cleared at a step, unless the settings say another.
    """
    if not settings.random_resets:
        probability = 0.0
    if settings.reset_probability is not None:
        probability = settings.reset_probability
    capacity = slots(extent, settings.shared, lasting=probability == 0)
    return counting(name, reward, settings, at_random(probability), capacity)


def slots(extent: Extent, shared: bool, *, lasting: bool) -> int:
    """Returns how many slots a table needs.

    Args:
        extent: of what is counted.
        shared: whether one table holds what all actors meet.
        lasting: whether nothing is forgotten. A learned policy may meet something new at two of
            three steps, and a table takes in nearly all until it is two thirds full.
    """
    each = max(LASTING_CAPACITY, extent.steps) if lasting else CAPACITY
    needed = each * extent.actors if shared else each
    return min(1 << (needed - 1).bit_length(), MOST_CAPACITY)


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
    keys = {kind: make_keys(settings, of_changes=kind == CHANGES) for kind in reward.counts}
    counter = _Counter(reward, settings, forget, settings.capacity or capacity, keys)
    many_at_once = all(each.make_all for each in keys.values())
    return none()._replace(
        name=name,
        coefficient=COEFFICIENT,
        init=counter.init,
        begin=counter.begin,
        observe=counter.observe,
        reward=counter.worth,
        report=report,
        observe_all=counter.observe_all if many_at_once else None,
    )


class _Counter(NamedTuple):
    """The functions of a method that counts, and what they share."""

    reward: CountReward
    settings: CountSettings
    forget: ForgetRule
    capacity: int
    keys: dict[str, Keys]  # of each kind

    def init(self, key: PRNGKeyArray, step: Step) -> tuple[Params, Tallies]:
        tables = 1 if self.settings.shared else len(step.view)
        keys = jax.random.split(key, len(self.keys))
        return Params({}, {}), {
            kind: Tally(
                keys=self.keys[kind].begin(key, self._seen(kind, step)),
                tables=table.empty_tables(tables, self.capacity),
            )
            for kind, key in zip(self.keys, keys, strict=True)
        }

    def begin(self, tallies: Tallies, key: PRNGKeyArray, step: Step) -> Tallies:
        states = {kind: tally.keys for kind, tally in tallies.items()}
        tables = _tables(tallies)
        if STATES in self.keys:
            seen = self._seen(STATES, step)
            states[STATES], lanes = self.keys[STATES].make(states[STATES], seen)
            tables[STATES], _ = _visit(tables[STATES], lanes)
        return _tallies(states, self._clear(tables, key, step))

    def observe(self, tallies: Tallies, key: PRNGKeyArray, step: Step) -> tuple[Tallies, Counted]:
        makers = {kind: keys.make for kind, keys in self.keys.items()}
        states, lanes = self._identify(makers, tallies, step)
        tables, counted = self._visit_all(_tables(tallies), (key, step, lanes))
        return _tallies(states, tables), counted

    def observe_all(
        self, tallies: Tallies, keys: Key[Array, " T"], steps: Step
    ) -> tuple[Tallies, dict[str, UInt32[Array, "T N"]]]:
        makers = {kind: keys.make_all for kind, keys in self.keys.items() if keys.make_all}
        states, lanes = self._identify(makers, tallies, steps)
        tables, counted = jax.lax.scan(self._visit_all, _tables(tallies), (keys, steps, lanes))
        return _tallies(states, tables), counted

    def worth(self, params: Params, trajectory: Trajectory) -> Float[Array, "T N"]:
        signal = trajectory.signal
        return self.reward.formula(*(signal[kind].astype(jnp.float32) for kind in self.keys))

    def _identify(
        self, makers: dict[str, Callable[..., Any]], tallies: Tallies, step: Step
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns, of each kind, the state after making keys, and the keys."""
        kinds = self.keys
        return _unzip({k: makers[k](tallies[k].keys, self._seen(k, step)) for k in kinds})

    def _visit_all(
        self, tables: Tables, inputs: tuple[PRNGKeyArray, Step, Any]
    ) -> tuple[Tables, Counted]:
        key, step, lanes = inputs
        tables, counted = _unzip({kind: _visit(tables[kind], lanes[kind]) for kind in self.keys})
        return self._clear(tables, key, step), counted

    def _clear(self, tables: Tables, key: PRNGKeyArray, step: Step) -> Tables:
        number = len(next(iter(tables.values())).generation)
        now = self.forget(key, step, (len(self.keys), number))
        reset = jax.vmap(table.reset)
        return {kind: reset(tables[kind], now[i]) for i, kind in enumerate(self.keys)}

    def _seen(self, kind: str, step: Step) -> Integer[Array, "..."]:
        view = self.settings.states if kind == STATES else self.settings.changes
        return step.view if view == "egocentric" else step.panorama


def report(tallies: Tallies) -> Metrics:
    """Returns the visits that found no room in the tables."""
    overflow = sum(tally.tables.overflow.sum() for tally in tallies.values())
    return {"count_overflow": jnp.asarray(overflow, jnp.float32)}


def _tables(tallies: Tallies) -> Tables:
    return {kind: tally.tables for kind, tally in tallies.items()}


def _tallies(states: dict[str, Any], tables: Tables) -> Tallies:
    return {kind: Tally(states[kind], tables[kind]) for kind in tables}


def _unzip(pairs: dict[str, tuple[Any, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    return {kind: first for kind, (first, _) in pairs.items()}, {
        kind: second for kind, (_, second) in pairs.items()
    }


def _visit(
    tables: CountTable, keys: UInt32[Array, "N lanes"]
) -> tuple[CountTable, UInt32[Array, " N"]]:
    if tables.generation.shape[0] == keys.shape[0]:
        return jax.vmap(table.visit)(tables, keys)
    shared = jax.tree.map(lambda leaf: leaf[0], tables)
    shared, count = jax.lax.scan(table.visit, shared, keys)
    return jax.tree.map(lambda leaf: leaf[None], shared), count
