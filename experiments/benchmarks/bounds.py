"""What bounds the speed of the worlds: bytes and operations a step, at this machine's rates.

Operations are XLA's own count for the compiled step of all worlds. Bytes are those of the
records that every step must read or write: the states, what is seen, the slots looked up.
(XLA's own count of bytes includes whole tables and pools.) The machine's rates are measured
beside them: copies of arrays that fit the caches and of arrays that do not, and operations on
arrays of bytes and of 32-bit integers, which is what a step consists of.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from cbet_jax.counts.table import WAYS
from envs.minigrid.rules import step as play_by_rules
from experiments.benchmarks.random_play import STEPS, RandomPlay
from experiments.benchmarks.timing import TimedTask, first_result, repeated

CACHED_BYTES, UNCACHED_BYTES = (
    2**20,
    2**28,
)  # of an array that fits the caches, and one that does not
COUNT_TABLES = 2  # of states and of changes
COUNTING_BYTES = COUNT_TABLES * (2 * WAYS + 1) * 3 * 4  # a step: two buckets read, one slot written
ADDITIONS = 64  # in a row, in registers
COUNTED = "rules, resets, views and counts"


class Cost(NamedTuple):
    """What a step of one world takes, or a part of an iteration."""

    operations: float
    bytes: float


def cost_of_step(play: RandomPlay) -> Cost:
    """Return the cost of one step of one world, including counts."""
    state, memory, key = jax.eval_shape(play.start, jax.random.key(0))
    actions = jax.ShapeDtypeStruct((play.world.num_worlds,), jnp.int32)
    _, seen = jax.eval_shape(play.world.step, state, actions)
    number = play.world.num_worlds
    counted = operations(play.step, (state, memory), key) / number
    return Cost(counted, moved_bytes((state.states, seen)) / number + COUNTING_BYTES)


def operations(function: Callable[..., Any], *arguments: Any) -> float:
    """Return XLA's count of the operations of a compiled function; loops count one turn.

    Args:
        function: the program.
        *arguments: its arguments, or their shapes.
    """
    analysis = jax.jit(function).lower(*arguments).compile().cost_analysis()
    assert analysis is not None
    return float(analysis["flops"])


def moved_bytes(records: Any) -> float:
    """Return how many bytes are moved by reading and writing arrays once."""
    leaves = jax.tree.leaves(records)
    return 2.0 * sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)


def rates() -> dict[str, TimedTask]:
    """Return tasks that measure the machine: bytes moved and additions made in a second."""
    tasks = copies()
    for kind in (jnp.uint8, jnp.uint32):
        tasks[f"operations, {jnp.dtype(kind).name}"] = _adding(kind)
    return tasks


def copies() -> dict[str, TimedTask]:
    """Return tasks that measure how many bytes are read and written in a second."""
    return {
        "copying within the caches": copying(CACHED_BYTES),
        "copying in memory": copying(UNCACHED_BYTES),
    }


def copying(size: int) -> TimedTask:
    """Return the task of copying an array of so many bytes again and again."""
    times = max(1, UNCACHED_BYTES // size)

    @partial(jax.jit, donate_argnums=0)
    def copy(array: Array) -> Array:
        # changes every byte, or XLA would leave the copy out
        return jax.lax.fori_loop(0, times, lambda _, a: jax.lax.optimization_barrier(a + 1), array)

    array = jnp.zeros(size // 4, jnp.uint32)
    return TimedTask(repeated(copy, array), 2.0 * size * times, "byte")


def _adding(kind: Any) -> TimedTask:
    array = jnp.arange(CACHED_BYTES // 8).astype(kind)

    @jax.jit
    def add(array: Array) -> Array:
        out = array
        for number in range(ADDITIONS):  # alternates with exclusive or, which allows no shortcut
            out = out + array if number % 2 else out ^ array
        return out

    return TimedTask(repeated(add, array), float(ADDITIONS * array.size), "operation")


def phases(play: RandomPlay) -> dict[str, TimedTask]:
    """Return the parts of a step to time: rules; then with views, counts and fresh levels."""
    state, memory, _ = play.start(jax.random.key(0))
    whole = play.task()
    number, actions = play.world.num_worlds, play.world.num_actions

    def rules(states: Any, key: Any) -> tuple[Any, Any]:
        chosen = jax.random.randint(key, (number,), 0, actions)
        states, outcome = jax.vmap(play_by_rules)(states, chosen)
        return states, outcome.interaction.sum()

    def seen(state: Any, key: Any) -> tuple[Any, Any]:
        chosen = jax.random.randint(key, (number,), 0, actions)
        state, step = play.world.step(state, chosen)
        return state, (step.view.sum(), step.panorama.sum())

    return {
        "rules": _looped(rules, state.states, number),
        "rules, resets and views": _looped(seen, state, number),
        COUNTED: _looped(play.step, (state, memory), number),
        "all, fresh levels too": whole,
    }


def _looped(step: Callable[[Any, Any], tuple[Any, Any]], carry: Any, number: int) -> TimedTask:
    @partial(jax.jit, donate_argnums=0)
    def loop(carry: Any) -> Any:
        carry, key = carry
        key, scan_key = jax.random.split(key)
        carry, told = jax.lax.scan(step, carry, jax.random.split(scan_key, STEPS))
        return (carry, key), told

    carry = jax.tree.map(jnp.copy, (carry, jax.random.key(1)))
    return TimedTask(repeated(first_result(loop), carry), STEPS * number, "step")
