"""Show the progress of a run: a bar, or plain lines without a terminal.

Both show the same text, since rich's columns have no plain form.
"""

import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

from cbet_jax.runs.metrics import SHOWN

PLAIN_LINE_SECONDS = 10.0  # between two plain lines
RECENT_SECONDS = 60.0  # window of the speed


class Speedometer:
    """Frames, frames a second and time left, without compiling.

    The speed is that of the last minute, or of the last chunk if longer, which forgets pauses.

    Args:
        done: frames of each seed so far.
        total: frames of each seed at the end.
        seeds: number of seeds.
    """

    def __init__(self, done: int, total: int, seeds: int) -> None:
        self.total = total
        self._seeds = seeds
        self._reached = deque([(time.monotonic(), done)])  # when, and how many frames

    def reach(self, done: int) -> None:
        """Note that each seed has played so many frames by now."""
        now = time.monotonic()
        self._reached.append((now, done))
        while self._reached[1][0] <= now - RECENT_SECONDS:
            self._reached.popleft()

    @property
    def done(self) -> int:
        """Frames that each seed has played."""
        return self._reached[-1][1]

    @property
    def frames_per_second(self) -> float:
        """Recent frames a second of all seeds together."""
        (began, first), (now, done) = self._reached[0], self._reached[-1]
        return (done - first) * self._seeds / (now - began) if now > began else 0.0

    @property
    def seconds_left(self) -> float:
        """Seconds to the end at this speed (0: not known yet)."""
        speed = self.frames_per_second
        return (self.total - self.done) * self._seeds / speed if speed else 0.0

    def __str__(self) -> str:
        """Frames, speed and time left in one line."""
        speed, left = self.frames_per_second, "-:--:--"
        if speed:
            minutes, seconds = divmod(round(self.seconds_left), 60)
            left = f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"  # hours may be above 24
        seeds = f" x {self._seeds}" if self._seeds > 1 else ""
        return f"{self.done:,}/{self.total:,} frames{seeds}  {speed:,.0f} frames/s  {left} left"


class Display:
    """A moving bar on a terminal, or one plain line now and then on anything else."""

    def __init__(self, console: Console, speed: Speedometer, bar: Progress | None) -> None:
        self._console = console
        self._speed = speed
        self._bar = bar
        self._task = bar.add_task(str(speed), total=speed.total) if bar else None
        self._shown_at = 0.0

    def update(self, frames: int, means: Mapping[str, float]) -> None:
        """Show the frames of each seed, and means of metrics over the last chunk."""
        self._speed.reach(frames)
        if self._bar and self._task is not None:
            lines = f"{self._speed}\n{summary(means)}"
            self._bar.update(self._task, completed=frames, description=lines)
        elif self._is_due() or frames >= self._speed.total:
            self._console.print(f"{self._speed}  {summary(means)}", soft_wrap=True, highlight=False)
            self._shown_at = time.monotonic()

    def _is_due(self) -> bool:
        return time.monotonic() - self._shown_at >= PLAIN_LINE_SECONDS


@contextmanager
def display(console: Console, speed: Speedometer) -> Iterator[Display]:
    """Show `speed` while the block runs."""
    if not console.is_terminal:
        yield Display(console, speed, None)
        return
    wrapped = Column(no_wrap=False)  # wrap in a narrow terminal
    columns = (BarColumn(bar_width=12), TextColumn("{task.description}", table_column=wrapped))
    with Progress(*columns, console=console) as bar:
        yield Display(console, speed, bar)


@contextmanager
def waiting(console: Console, what: str) -> Iterator[None]:
    """Show `what`, and on a terminal for how long, while the block runs."""
    if not console.is_terminal:
        console.print(f"{what} ...", highlight=False)
        yield
        return
    columns = SpinnerColumn(), TextColumn(f"{what} ..."), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        bar.add_task("")
        yield


def summary(means: Mapping[str, float]) -> str:
    """Return the few main metrics as one short text."""
    return "  ".join(f"{SHOWN[name]} {means[name]:.3g}" for name in SHOWN if name in means)
