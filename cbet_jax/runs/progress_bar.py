"""What is shown while a run trains: a progress bar, or plain lines without a terminal."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

SHOWN = {  # metrics that matter while training -> how they are called on screen
    "interactions": "interactions",
    "intrinsic_reward": "intrinsic",
    "success": "success",
    "entropy": "entropy",
    "positions": "positions",
    "episodes_cut": "cut",
}
PLAIN_SECONDS = 10.0  # between two plain lines


class Speedometer:
    """Frames, frames a second and time left; compiling is not part of it."""

    def __init__(self, done: int, total: int, seeds: int) -> None:
        self.done = done  # frames of each seed
        self.total = total
        self._first = done
        self._seeds = seeds
        self._began = time.monotonic()

    @property
    def frames_per_second(self) -> float:
        """Frames a second since the start, of all seeds together."""
        seconds = time.monotonic() - self._began
        return (self.done - self._first) * self._seeds / seconds if seconds > 0 else 0.0

    def __str__(self) -> str:
        """Frames, speed and time left in one line."""
        speed = self.frames_per_second
        left = clock((self.total - self.done) * self._seeds / speed) if speed else "-:--"
        seeds = f" x {self._seeds}" if self._seeds > 1 else ""
        return f"{self.done:,}/{self.total:,} frames{seeds}  {speed:,.0f} frames/s  {left} left"


class Display:
    """Lines that move (terminal), or one line now and then (anything else)."""

    def __init__(self, console: Console, speed: Speedometer, bar: Progress | None) -> None:
        self._console = console
        self._speed = speed
        self._bar = bar
        self._task = bar.add_task(str(speed), total=speed.total) if bar else None
        self._shown = 0.0

    def update(self, frames: int, means: Mapping[str, float]) -> None:
        """Shows how far the run is.

        Args:
            frames: played so far by each seed.
            means: metric -> mean over the last chunk and all seeds.
        """
        self._speed.done = frames
        if self._bar and self._task is not None:
            lines = f"{self._speed}\n{summary(means)}"
            self._bar.update(self._task, completed=frames, description=lines)
        elif time.monotonic() - self._shown >= PLAIN_SECONDS or frames >= self._speed.total:
            line = f"{self._speed}  {summary(means)}"
            self._console.print(line, soft_wrap=True, highlight=False)
            self._shown = time.monotonic()


@contextmanager
def display(console: Console, speed: Speedometer) -> Iterator[Display]:
    """Keeps a display of `speed` up while the block runs."""
    if not console.is_terminal:
        yield Display(console, speed, None)
        return
    columns = (BarColumn(bar_width=12), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as bar:
        yield Display(console, speed, bar)


@contextmanager
def waiting(console: Console, what: str) -> Iterator[None]:
    """Shows that something of unknown length is under way."""
    if not console.is_terminal:
        console.print(f"{what} ...", highlight=False)
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as spinner:
        spinner.add_task(what, total=None)
        yield


def summary(means: Mapping[str, float]) -> str:
    """Returns the few metrics that matter as one short text."""
    return "  ".join(f"{SHOWN[name]} {means[name]:.3g}" for name in SHOWN if name in means)


def clock(seconds: float) -> str:
    """Returns a duration as h:mm:ss or m:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
