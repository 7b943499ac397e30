"""Measure where the time of a run goes, as seen from its host callback."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Shares(NamedTuple):
    """Shares of the time between the first step and the last. They sum to 1."""

    rendering: float  # waiting for the simulators
    callback: float  # the rest of the callback, mostly copying images
    acting: float  # between two steps of the same sequence
    learning: float  # between two sequences: counting, learning, saving


class Stopwatch:
    """Adds up the time in and between steps."""

    def __init__(self) -> None:
        self.steps = 0  # of all worlds
        self.sequence = 0  # calls between two updates of the agents (0: no updates)
        self._calls = 0
        self._calling = False
        self._last: float | None = None  # when the last call ended
        self._waited = self._called = self._acted = self._learnt = 0.0

    @contextmanager
    def call(self, worlds: int) -> Iterator[None]:
        """Time a call that takes one step in each of `worlds`."""
        began = time.perf_counter()
        if self._last is not None and self.sequence and self._calls % self.sequence == 0:
            self._learnt += began - self._last
        elif self._last is not None:
            self._acted += began - self._last
        self._calling = True
        yield
        self._calling = False
        self._last = time.perf_counter()
        self._called += self._last - began
        self._calls += 1
        self.steps += worlds

    @contextmanager
    def wait(self) -> Iterator[None]:
        """Time a part of a call in which the simulators work. Does not count outside of calls."""
        began = time.perf_counter()
        yield
        if self._calling:
            self._waited += time.perf_counter() - began

    @property
    def seconds(self) -> float:
        """The seconds from the first step to the last."""
        return self._called + self._acted + self._learnt

    def shares(self) -> Shares:
        """Return where the time went; NaN before the first step."""
        spent = (self._waited, self._called - self._waited, self._acted, self._learnt)
        return Shares(*(part / self.seconds if self.steps else float("nan") for part in spent))
