"""How the benchmark times: tasks take turns in short slices, and ratios compare neighbours.

A busy machine slows neighbouring slices alike, so their ratio holds where the speeds do not.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

ROUND_SECONDS = 1.0  # that a task is timed for in each round, at least
SLICE_SECONDS = 0.1  # that a task is timed for before the next one has its turn, at least
MOST_SPREAD = 0.25  # of a ratio; with more it says nothing
FEWEST_PAIRS = 3  # of slices, that a ratio is made of


class TimedTask(NamedTuple):
    """Something to time."""

    run: Callable[[], None]  # returns when its results are there
    amount: float  # of work in one run
    unit: str  # of the amount; speeds are in units a second


class Ratio(NamedTuple):
    """How many times as fast one task was as another, in slices measured next to each other."""

    value: float | None  # the median of all pairs; None if they are too few or spread too far
    spread: float  # from the 10th to the 90th percentile of all pairs, as a share of the median
    pairs: int

    def __str__(self) -> str:
        if self.value is None:
            return f"no ratio (spread {self.spread:.0%} of {self.pairs})"
        return f"{self.value:.2f} (spread {self.spread:.0%})"


class Timings(NamedTuple):
    """The speeds of tasks that took turns."""

    turns: Sequence[Mapping[str, float]]  # the speed of each task in each turn

    def medians(self) -> dict[str, float]:
        """Return the median speed of each task."""
        return {
            name: float(np.median([turn[name] for turn in self.turns])) for name in self.turns[0]
        }

    def times(self, task: str, other: str) -> Ratio:
        """Return how many times as fast a task is as another."""
        found = [turn[task] / turn[other] for turn in self.turns]
        median = float(np.median(found))
        low, high = np.percentile(found, (10, 90))
        spread = float(high - low) / median
        holds = spread <= MOST_SPREAD and len(found) >= FEWEST_PAIRS
        return Ratio(median if holds else None, spread, len(found))


def take_turns(tasks: Mapping[str, TimedTask], rounds: int) -> Timings:
    """Time tasks in turn, slice by slice, for `rounds` times `ROUND_SECONDS` or longer.

    The first runs, of which one may compile, are not timed. Short tasks run again and again for
    `SLICE_SECONDS`, so what the last task left in the caches does not count.
    """
    calls = {name: _calls(task) for name, task in tasks.items()}
    longest = max(_seconds(task, calls[name]) for name, task in tasks.items())
    turns = rounds * max(1, int(ROUND_SECONDS / max(longest, SLICE_SECONDS, 1e-9)))
    return Timings(
        [
            {
                name: task.amount * calls[name] / _seconds(task, calls[name])
                for name, task in tasks.items()
            }
            for _ in range(turns)
        ]
    )


def _calls(task: TimedTask) -> int:
    task.run()
    return max(1, round(SLICE_SECONDS / _seconds(task, 1)))


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
