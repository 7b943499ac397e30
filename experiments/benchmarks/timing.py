"""How the benchmark times: in turn, in rounds, since a busy machine then slows all tasks alike."""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

ROUND_SECONDS = 0.5  # that a task is timed for in each round, at least


class TimedTask(NamedTuple):
    """Something to time."""

    run: Callable[[], None]  # returns when its results are there
    amount: float  # of work in one run
    unit: str  # of the amount; speeds are in units a second


def speeds(tasks: Mapping[str, TimedTask], rounds: int) -> dict[str, float]:
    """Time every task once a round, in turn, and return the median speed of each.

    The first run, which may compile, is not timed. Short tasks run again and again for
    `ROUND_SECONDS`, so what the last task left in the caches does not count.
    """
    calls = {name: _calls(task) for name, task in tasks.items()}
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            seconds[name].append(_seconds(task, calls[name]))
    return {
        name: task.amount * calls[name] / float(np.median(seconds[name]))
        for name, task in tasks.items()
    }


def _calls(task: TimedTask) -> int:
    task.run()
    return max(1, round(ROUND_SECONDS / _seconds(task, 1)))


def _seconds(task: TimedTask, calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        task.run()
    return time.perf_counter() - began


def repeated(advance: Callable[[Any], Any], state: Any) -> Callable[[], None]:
    """Return a function that advances `state` once per call; `advance` may donate it."""
    cell = [state]

    def run() -> None:
        cell[0] = jax.block_until_ready(advance(cell[0]))

    return run


def first_result(program: Callable[[Any], tuple[Any, Any]]) -> Callable[[Any], Any]:
    """Return a function that returns the first of the two results of `program`."""

    def first(state: Any) -> Any:
        return program(state)[0]

    return first


def seconds_to_compile(compile_all: Callable[[], Any]) -> float:
    """Return how long compiling takes with nothing cached."""
    cached = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    jax.clear_caches()
    began = time.perf_counter()
    compile_all()
    seconds = time.perf_counter() - began
    jax.config.update("jax_enable_compilation_cache", cached)
    return seconds
