"""What a run says of its progress."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from cbet_jax.runs import progress_bar
from cbet_jax.runs.progress_bar import Speedometer


@pytest.mark.parametrize(
    ("total", "left"), [(100, "0:01:00"), (100 + 3540, "1:00:00"), (40 + 93_780, "26:03:00")]
)
def test_the_time_left_is_hours_minutes_and_seconds(monkeypatch, total, left):
    now = [0.0]
    monkeypatch.setattr(progress_bar, "time", SimpleNamespace(monotonic=lambda: now[0]))
    speed = Speedometer(0, total, 1)
    now[0], speed.done = 40.0, 40
    assert str(speed) == f"40/{total:,} frames  1 frames/s  {left} left"


def test_a_narrow_terminal_cuts_nothing_off():
    shown_there = io.StringIO()
    terminal = Console(force_terminal=True, width=40, file=shown_there)
    with progress_bar.display(terminal, Speedometer(0, 33_000_000, seeds=2)) as shown:
        shown.update(9_000_000, {"success": 0.45, "entropy": 1.25})
    assert {"left", "0.45", "1.25"} <= set(shown_there.getvalue().split())
