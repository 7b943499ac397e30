"""What a run says of its progress."""

from types import SimpleNamespace

import pytest

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
