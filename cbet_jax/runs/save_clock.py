"""When the next checkpoint is due, by the time that the last one took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from cbet_jax.runs import multihost

SAVING_SHARE = 0.1  # saving takes at most this share of a run's time,
LONGEST_SECONDS = 600.0  # unless a checkpoint would be older than this and a chunk


class SaveClock:
    """Tells when the next checkpoint is due.

    Args:
        least_seconds: least time between two checkpoints (None: see `SAVING_SHARE`).
    """

    def __init__(self, least_seconds: float | None) -> None:
        self._least_seconds = least_seconds
        self._last = time.monotonic()
        self._save_seconds = 0.0  # how long the last save took

    def restart(self) -> None:
        """Count the time from here."""
        self._last = time.monotonic()

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Time the block as the cost of a checkpoint, and restart the clock at its end."""
        began = time.monotonic()
        yield
        self._last = time.monotonic()
        self._save_seconds = self._last - began

    def is_due(self) -> bool:
        """Return whether the last checkpoint is old enough on any host."""
        least = self._least_seconds
        if least is None:
            least = min(self._save_seconds / SAVING_SHARE, LONGEST_SECONDS)
        return bool(multihost.largest(time.monotonic() - self._last >= least))
