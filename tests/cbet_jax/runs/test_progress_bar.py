"""What a run says of its progress."""

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from cbet_jax.runs import progress_bar
from cbet_jax.runs.progress_bar import Speedometer


@pytest.fixture
def clock(monkeypatch):
    """The time that the progress bar sees, which stands still."""
    time = SimpleNamespace(now=0.0)
    time.monotonic = lambda: time.now
    monkeypatch.setattr(progress_bar, "time", time)
    return time


@pytest.mark.parametrize(
    ("total", "left"), [(100, "0:01:00"), (100 + 3540, "1:00:00"), (40 + 93_780, "26:03:00")]
)
def test_the_time_left_is_hours_minutes_and_seconds(clock, total, left):
    speed = Speedometer(0, total, 1)
    clock.now = 40.0
    speed.reach(40)
    assert str(speed) == f"40/{total:,} frames  1 frames/s  {left} left"


def test_the_speed_is_that_of_the_last_minute_or_the_last_chunk(clock):
    speed, seen = Speedometer(0, 1000, seeds=2), []
    for clock.now, frames in ((20, 20), (600, 30), (620, 50), (650, 80), (680, 110), (1000, 270)):
        speed.reach(frames)
        seen.append(speed.frames_per_second)
    assert seen == [2, 2 * 10 / 580, 2 * 30 / 600, 2 * 60 / 630, 2, 1]


def test_what_is_waited_for_has_a_clock_on_a_terminal():
    shown = io.StringIO()
    terminal = Console(force_terminal=True, width=80, file=shown)
    with progress_bar.waiting(terminal, "compiling"):
        pass
    assert "compiling ... 0:00:00" in terminal_text(shown.getvalue())


def terminal_text(text: str) -> str:
    """Return text without a terminal's escape sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def test_a_narrow_terminal_cuts_nothing_off():
    shown_there = io.StringIO()
    terminal = Console(force_terminal=True, width=40, file=shown_there)
    with progress_bar.display(terminal, Speedometer(0, 33_000_000, seeds=2)) as shown:
        shown.update(9_000_000, {"success": 0.45, "entropy": 1.25})
    assert {"left", "0.45", "1.25"} <= set(shown_there.getvalue().split())
