"""Where the time goes, by hand: a clock that the test moves."""

import math

import pytest

from envs.habitat.workers import stopwatch
from envs.habitat.workers.stopwatch import Stopwatch


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still; add to it what is to pass."""
    now = [100.0]
    monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: now[0])
    return now


def call(watch: Stopwatch, clock: list[float], rendering: float, rest: float) -> None:
    with watch.call(4):
        with watch.wait():
            clock[0] += rendering
        clock[0] += rest


def test_all_time_from_the_first_step_on_is_told_apart(clock) -> None:
    watch = Stopwatch()
    watch.sequence = 2
    for before in (1000.0, 1.0, 10.0, 2.0):  # compiling, acting, learning, acting
        clock[0] += before
        call(watch, clock, 5.0, 0.25)
    assert watch.steps == 16
    assert watch.seconds == 4 * 5.25 + 13
    shares = watch.shares()
    expected = [20 / 34, 1 / 34, 3 / 34, 10 / 34]
    assert list(shares) == pytest.approx(expected)


def test_waiting_outside_of_steps_is_not_counted(clock) -> None:
    watch = Stopwatch()
    assert all(map(math.isnan, watch.shares()))
    with watch.wait():  # an episode begins
        clock[0] += 7.0
    call(watch, clock, 1.0, 1.0)
    assert list(watch.shares()) == [0.5, 0.5, 0.0, 0.0]
