"""Where a run's time goes, as its host callback sees it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Shares(NamedTuple):
    """Shares of the time between the first step and the last; they sum to 1."""

    rendering: float  # waiting for the simulators
    callback: float  # the rest of the host's side of steps: copying images, above all
    acting: float  # between two steps of one sequence
    learning: float  # between two sequences: counting, learning, saving


class Stopwatch:
    """Adds up what steps take, and what goes on between them."""

    def __init__(self) -> None:
        self.steps = 0  # of all worlds
        self.sequence = 0  # calls after which the agents learn (0: they never do)
        self._calls = 0
        self._calling = False
        self._last: float | None = None  # when the last call ended
        self._waited = self._called = self._acted = self._learnt = 0.0

    @contextmanager
    def call(self, worlds: int) -> Iterator[None]:
        """Times a call that plays a step in each of `worlds`."""
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
        """Times a part of a call in which the simulators work; outside calls it is not counted."""
        began = time.perf_counter()
        yield
        if self._calling:
            self._waited += time.perf_counter() - began

    @property
    def seconds(self) -> float:
        """How long it is from the first step to the last."""
        return self._called + self._acted + self._learnt

    def shares(self) -> Shares:
        """Returns where the time went; NaN before the first step."""
        spent = (self._waited, self._called - self._waited, self._acted, self._learnt)
        return Shares(*(part / self.seconds if self.steps else float("nan") for part in spent))
