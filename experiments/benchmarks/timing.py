"""Time tasks in short slices, in turn, and compare neighbouring slices.

A busy machine slows neighbouring slices alike: their ratio holds even if the speeds do not.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

ROUND_SECONDS = 1.0  # shortest time of a task in a round
SLICE_SECONDS = 0.1  # shortest time of a task's turn
MOST_SPREAD = 0.25  # largest spread of a ratio that is reported
FEWEST_PAIRS = 3  # fewest pairs of slices for a ratio


class TimedTask(NamedTuple):
    """A task to time."""

    run: Callable[[], None]  # returns when its results are computed
    amount: float  # work done by one run, such as steps


class Ratio(NamedTuple):
    """A task's speed as a multiple of another's, from pairs of neighbouring slices."""

    value: float | None  # the median of all pairs; None: too few pairs, or too much spread
    spread: float  # distance from the 10th to the 90th percentile, relative to the median
    pairs: int  # number of pairs

    def __str__(self) -> str:
        if self.value is None:
            return f"no ratio (spread {self.spread:.0%} of {self.pairs})"
        return f"{self.value:.2f} (spread {self.spread:.0%})"


class Timings(NamedTuple):
    """Speeds of tasks that took turns."""

    turns: Sequence[Mapping[str, float]]  # each task's speed, turn by turn

    def medians(self) -> dict[str, float]:
        """Return each task's median speed."""
        return {
            name: float(np.median([turn[name] for turn in self.turns])) for name in self.turns[0]
        }

    def times(self, task: str, other: str) -> Ratio:
        """Return a task's speed as a multiple of another's."""
        found = [turn[task] / turn[other] for turn in self.turns]
        median = float(np.median(found))
        low, high = np.percentile(found, (10, 90))
        spread = float(high - low) / median
        holds = spread <= MOST_SPREAD and len(found) >= FEWEST_PAIRS
        return Ratio(median if holds else None, spread, len(found))


def take_turns(tasks: Mapping[str, TimedTask], rounds: int) -> Timings:
    """Time tasks in turn for at least `rounds` times `ROUND_SECONDS`.

    The first runs, which may compile, are not timed. Short tasks repeat for `SLICE_SECONDS`, so the
    previous task's traces in the caches hardly count.
    """
    calls = {name: _calls(task) for name, task in tasks.items()}
    longest = max(_seconds(task, calls[name]) for name, task in tasks.items())
    turns = rounds * max(1, math.ceil(ROUND_SECONDS / max(longest, SLICE_SECONDS)))
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
    """Return how many seconds compiling takes with empty caches."""
    cached = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    jax.clear_caches()
    began = time.perf_counter()
    compile_all()
    seconds = time.perf_counter() - began
    jax.config.update("jax_enable_compilation_cache", cached)
    return seconds
