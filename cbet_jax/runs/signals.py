"""Ask a run to stop: the first Ctrl-C saves and ends it, a second one ends the process.

Outside of training, `experiments.common.interrupts` ends a command.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last: the terminal is gone
HANDLED_WITHIN = 0.5  # seconds
SAME_WITHIN = 0.5  # seconds; a launcher repeats a Ctrl-C that the terminal has sent, too
THREAD = "interruptible"  # the name of a thread that works while the main one handles signals


class Stop:
    """The signal that asked the run to stop (0: none)."""

    def __init__(self, waits_for: str) -> None:
        self.signal = 0
        self.waits_for = waits_for  # long work that must end first, in words

    def reply(self) -> None:
        """Say that the run will stop later, if it cannot at once."""
        if self.waits_for:
            with contextlib.suppress(OSError):  # the terminal may be closed
                print(f"stopping when {self.waits_for} is done; another Ctrl-C ends it", flush=True)


@contextmanager
def stop_on_signals(waits_for: str = "") -> Iterator[Stop]:
    """Turn Ctrl-C, SIGTERM and SIGHUP into a request that the block reads when it can.

    After the first of them, Ctrl-C does what it did before, and the others are ignored. A Ctrl-C
    within `SAME_WITHIN` is the same one: `uv run` may send a signal twice. Where SIGHUP is ignored,
    as under nohup, it stays so.

    Args:
        waits_for: long work that must end first, in words; the block can change it.
    """
    stop = Stop(waits_for)
    previous = {number: signal.getsignal(number) for number in SIGNALS}
    if previous[signal.SIGHUP] == signal.SIG_IGN:
        del previous[signal.SIGHUP]
    asked_at = 0.0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked_at
        if not stop.signal:
            stop.signal, asked_at = number, time.monotonic()
            stop.reply()
        elif number == signal.SIGINT and time.monotonic() > asked_at + SAME_WITHIN:
            signal.signal(signal.SIGINT, previous[signal.SIGINT])
            signal.raise_signal(signal.SIGINT)

    for number in previous:
        signal.signal(number, note)
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def interruptible[T](work: Callable[[], T]) -> T:
    """Return the result of `work`, and handle signals while it works."""
    with in_thread(work) as result:
        return result()


@contextmanager
def in_thread[T](work: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """Run `work` in a thread; yield a function that waits for it while handling signals.

    The block's end waits for the thread.

    Python handles signals in its main thread only, between two of its own instructions, and other
    threads' signals do not wake it, so it polls. A second Ctrl-C raises KeyboardInterrupt, and the
    thread works on (`is_work_left`).
    """
    future: futures.Future[T] = futures.Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    def wait() -> T:
        while not future.done():
            futures.wait([future], timeout=HANDLED_WITHIN)
        return future.result()

    thread = threading.Thread(target=run, name=THREAD, daemon=True)
    thread.start()
    try:
        yield wait
    except Exception:
        thread.join()
        raise
    thread.join()


def is_work_left() -> bool:
    """Return whether a thread still works after a KeyboardInterrupt: ending Python may crash."""
    return any(thread.name == THREAD for thread in threading.enumerate())
