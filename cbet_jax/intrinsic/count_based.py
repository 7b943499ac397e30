"""Count-based rewards: what C-BET, Count, RIDE, NovelD and the ablation share.

A state is a view. A change is the difference of two successive panoramas (paper, section 3.1).
Each step goes in the order of the published code: make the keys of the new state and of the
change, increment their counts, read the counts (so N >= 1), reset tables where the rule says so.
When a rollout begins, the current view is counted once more (as a state only), and the reset rule
is applied once more.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Integer, Key, Num, PRNGKeyArray, UInt32

from cbet_jax.config import SettingsError, TrainSettings
from cbet_jax.counts import table
from cbet_jax.counts.observation_keys import KeyState, key_maker
from cbet_jax.counts.resets import Resets
from cbet_jax.counts.table import CountTable, table_capacity
from cbet_jax.intrinsic.interface import (
    COUNT_COEFFICIENT,
    Experience,
    Intrinsic,
    Loss,
    Metrics,
    Params,
    Reward,
)
from cbet_jax.types import Trajectory
from envs.types import Step

STATES, CHANGES = "states", "changes"  # the two kinds that are counted

Numbers = Num[ArrayLike, "*shape"]  # counts, N(s') or N(c), or rewards computed from them


class CountReward(NamedTuple):
    """A reward that is a function of visit counts."""

    counted: tuple[str, ...]  # STATES, CHANGES or both
    formula: Callable[..., Any]  # takes the counts of each kind, in that order; returns the reward


class VisitCounts(NamedTuple):
    """Visit counts of one kind, of all actors."""

    keys: KeyState  # state of the key maker
    tables: CountTable  # arrays [N, ...], or [1, ...] if all actors share one table


Memory = dict[str, VisitCounts]  # by kind
Tables = dict[str, CountTable]
Keys = dict[str, UInt32[Array, "*T N lanes"]]
Counts = dict[str, UInt32[Array, "*T N"]]  # this visit included


def count_based(
    name: str, reward: CountReward, settings: TrainSettings, resets: Resets
) -> Intrinsic:
    """Return a method whose reward is a formula of visit counts.

    Args:
        name: the method's name.
        reward: what is counted, and the formula of the reward.
        settings: `settings.counts` says how to count.
        resets: when to reset which tables.
    """
    counts, kinds = settings.counts, reward.counted
    makers = {kind: key_maker(counts, of_changes=kind == CHANGES) for kind in kinds}
    capacity = table_capacity(settings, lasting=resets.never)

    views = {kind: counts.states if kind == STATES else counts.changes for kind in kinds}

    def observed(kind: str, step: Step) -> Integer[Array, "..."]:
        return step.reached if views[kind] == "egocentric" else step.panorama

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, Memory]:
        num_tables = 1 if counts.shared else len(step.view)
        keys = zip(kinds, jax.random.split(key, len(kinds)), strict=True)
        return Params({}, {}), {
            kind: VisitCounts(
                keys=makers[kind].init(key, observed(kind, step)),
                tables=table.empty_tables(num_tables, capacity),
            )
            for kind, key in keys
        }

    def begin_rollout(memory: Memory, reset_key: PRNGKeyArray, step: Step) -> Memory:
        tables = _tables(memory)
        if STATES in kinds:
            _, (keys,) = makers[STATES].make(memory[STATES].keys, observed(STATES, step)[None])
            tables[STATES], _ = _visit(tables[STATES], keys)
        return _with_tables(memory, reset(tables, reset_key, step))

    def observe(
        params: Params, memory: Memory, reset_keys: Key[Array, " T"], experience: Experience
    ) -> tuple[Memory, Counts]:
        steps, keys = experience.step, {}
        for kind, maker in makers.items():
            key_state, keys[kind] = maker.make(memory[kind].keys, observed(kind, steps))
            memory = {**memory, kind: memory[kind]._replace(keys=key_state)}
        tables, visits = jax.lax.scan(count, _tables(memory), (reset_keys, steps, keys))
        return _with_tables(memory, tables), visits

    def count(tables: Tables, inputs: tuple[PRNGKeyArray, Step, Keys]) -> tuple[Tables, Counts]:
        reset_key, step, keys = inputs
        visited = {kind: _visit(tables[kind], keys[kind]) for kind in kinds}
        tables = {kind: after for kind, (after, _) in visited.items()}
        visits = {kind: number for kind, (_, number) in visited.items()}
        return reset(tables, reset_key, step), visits

    def reset(tables: Tables, reset_key: PRNGKeyArray, step: Step) -> Tables:
        num_tables = len(tables[kinds[0]].generation)
        mask = resets.mask(reset_key, step, (len(kinds), num_tables))
        return {kind: jax.vmap(table.reset)(tables[kind], mask[i]) for i, kind in enumerate(kinds)}

    def rewards(params: Params, trajectory: Trajectory) -> Float[Array, "T N"]:
        visits = (trajectory.signal[kind].astype(jnp.float32) for kind in kinds)
        return reward.formula(*visits)

    return Intrinsic(
        name=name,
        coefficient=COUNT_COEFFICIENT,
        reward=rewards,
        init=init,
        begin_rollout=begin_rollout,
        observe=observe,
        metrics=overflow,
        panoramas="panoramic" in views.values(),
    )


def with_networks(
    count: Intrinsic,
    networks: Intrinsic,
    coefficient: float,
    reward: Callable[[Params, Trajectory], tuple[Reward, Loss]],
) -> Intrinsic:
    """Return a method that counts as `count` does, and has the networks of `networks`.

    Args:
        count: the method that counts.
        networks: the method whose `init` makes the networks; it says whether final views are read.
        coefficient: weight of the reward.
        reward: returns the reward and the loss of the networks.

    Raises:
        SettingsError: panoramas are counted, and final views asked for: none is a panorama.
    """
    if count.panoramas and networks.final_views:
        raise SettingsError("no final view is a panorama: leave --auxiliary.final-views out")

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, Memory]:
        count_key, networks_key = jax.random.split(key)
        return networks.init(networks_key, step)[0], count.init(count_key, step)[1]

    final = networks.final_views
    return count._replace(coefficient=coefficient, reward=reward, init=init, final_views=final)


def overflow(memory: Memory) -> Metrics:
    """Return the number of visits without a free slot since the run began."""
    # float32, since the sum over many actors may overflow an integer.
    lost = (counts.tables.overflow.astype(jnp.float32).sum() for counts in memory.values())
    return {"count_overflow": jnp.asarray(sum(lost), jnp.float32)}


def _tables(memory: Memory) -> Tables:
    return {kind: counts.tables for kind, counts in memory.items()}


def _with_tables(memory: Memory, tables: Tables) -> Memory:
    return {kind: counts._replace(tables=tables[kind]) for kind, counts in memory.items()}


def _visit(
    tables: CountTable, keys: UInt32[Array, "N lanes"]
) -> tuple[CountTable, UInt32[Array, " N"]]:
    """Count one visit of each actor: in its own table, or one after the other in a shared one."""
    if len(tables.generation) == len(keys):
        return jax.vmap(table.visit)(tables, keys)
    shared = jax.tree.map(lambda leaf: leaf[0], tables)
    shared, visits = jax.lax.scan(table.visit, shared, keys)
    return jax.tree.map(lambda leaf: leaf[None], shared), visits
