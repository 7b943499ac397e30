"""Timing in turns, on a clock that the tests turn."""

from types import SimpleNamespace

import pytest

from experiments.benchmarks import timing
from experiments.benchmarks.timing import Ratio, TimedTask, Timings, take_turns


class Machine:
    """A clock, and tasks that move it on: slower and slower while the machine gets busier."""

    def __init__(self, monkeypatch, busier: float = 0.0):
        self.now, self.busier, self.order = 0.0, busier, []
        monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def task(self, name: str, seconds: float, amount: float = 1.0) -> TimedTask:
        def run():
            self.order.append(name)
            self.now += seconds * (1 + self.busier * self.now)

        return TimedTask(run, amount)


def test_a_ratio_holds_on_a_machine_that_gets_busier(monkeypatch):
    machine = Machine(monkeypatch, busier=0.1)
    tasks = {"fast": machine.task("fast", 0.1), "slow": machine.task("slow", 0.2)}
    timings = take_turns(tasks, rounds=12)
    ratio = timings.times("fast", "slow")
    assert ratio.value == pytest.approx(2, rel=0.1)
    assert ratio.spread < 0.05
    first, last = timings.turns[0]["fast"], timings.turns[-1]["fast"]
    assert last < 0.5 * first  # the speeds themselves say nothing


def test_a_speed_is_the_work_of_all_runs_of_a_turn(monkeypatch):
    """A short task runs several times in a turn."""
    machine = Machine(monkeypatch)
    tasks = {"short": machine.task("short", 0.01, 3.0), "long": machine.task("long", 0.5, 3.0)}
    timings = take_turns(tasks, rounds=2)
    assert timings.medians() == pytest.approx({"short": 300, "long": 6})
    assert str(timings.times("short", "long")) == "50.00 (spread 0%)"


def test_a_ratio_that_spreads_too_far_or_of_too_few_pairs_is_not_printed():
    turns = [{"one": speed, "other": 1.0} for speed in (1.0, 1.2, 1.1, 1.3, 0.9)]
    ratio = Timings(turns).times("one", "other")
    assert ratio == Ratio(None, pytest.approx((1.26 - 0.94) / 1.1), 5)
    assert str(ratio) == "no ratio (spread 29% of 5)"
    assert str(Timings(turns[:3]).times("one", "other")) == "1.10 (spread 15%)"
    assert str(Timings(turns[1:3]).times("one", "other")) == "no ratio (spread 7% of 2)"


@pytest.mark.parametrize("seconds", [0.05, 0.4, 0.6, 3.0])
def test_a_round_measures_the_slowest_task_for_a_second_or_longer(seconds, monkeypatch):
    machine = Machine(monkeypatch)
    timings = take_turns({"one": machine.task("one", seconds)}, rounds=2)
    slowest = max(seconds, timing.SLICE_SECONDS)
    assert 2 <= len(timings.turns) * slowest < 2 * (1 + slowest) + 1e-6
