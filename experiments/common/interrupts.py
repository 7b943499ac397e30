"""Ctrl-C where Python's own answer to it gets lost. Nothing in this file takes long to import."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130  # exit status
LINE = b"error: interrupted\n"
AGAIN = 2.0  # seconds


@contextmanager
def at_once() -> Iterator[None]:
    """End the process at Ctrl-C. It is for imports: nothing is lost there.

    There an exception may leave a module half imported, become another one, or be swallowed.
    """
    if not is_pythons_own():
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def at_once_from_now_on() -> None:
    """End the process at Ctrl-C, until a command begins or `no_longer_at_once` is called."""
    if is_pythons_own():
        signal.signal(signal.SIGINT, _end)


def no_longer_at_once() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def insistent() -> Iterator[None]:
    """Raise KeyboardInterrupt at Ctrl-C, and again until it leaves the block.

    While JAX compiles, code that catches all exceptions may swallow it.
    """
    if not is_pythons_own():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        answered()
        signal.signal(signal.SIGALRM, before)
        signal.signal(signal.SIGINT, signal.default_int_handler)


def answered() -> None:
    """Raise no KeyboardInterrupt again: Ctrl-C has had its answer."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    os.write(2, LINE)
    os._exit(INTERRUPTED)


def is_pythons_own() -> bool:
    """Return whether nobody answers Ctrl-C here but Python, or `at_once`."""
    own = signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _end)
    return own and threading.current_thread() is threading.main_thread()
