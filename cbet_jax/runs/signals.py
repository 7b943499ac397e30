"""Ask a run to stop: the first Ctrl-C is a request, the second one ends the process."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """The signal that asked the run to stop (0: none)."""

    signal: int = 0


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Turn Ctrl-C and SIGTERM into a request that the block reads when it can."""
    stop = Stop()
    previous = {number: signal.getsignal(number) for number in SIGNALS}

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def note(number: int, frame: FrameType | None) -> None:
        stop.signal = number
        restore()

    for number in SIGNALS:
        signal.signal(number, note)
    try:
        yield stop
    finally:
        restore()
