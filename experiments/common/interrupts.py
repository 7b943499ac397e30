"""Handle Ctrl-C where KeyboardInterrupt gets lost. This file imports nothing slow.

In training, `cbet_jax.runs.signals` saves the run first.
"""

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

STOPPED = 128  # exit status, plus the signal's number
INTERRUPTED = STOPPED + signal.SIGINT
LINE = b"error: interrupted\n"
AGAIN = 2.0  # seconds


def end_at_once() -> None:
    """End the process at Ctrl-C outside `insistent`: an import may swallow the exception."""
    if is_pythons_own():
        signal.signal(signal.SIGINT, _end)


def raise_again() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, as Python does by itself."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def insistent() -> Iterator[None]:
    """Raise KeyboardInterrupt at Ctrl-C until it leaves the block: JAX may swallow the first."""
    if not is_pythons_own():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
        raise KeyboardInterrupt

    def unheard(lost: Any) -> None:
        if lost.exc_type is not KeyboardInterrupt:  # which is raised again
            hook(lost)

    hook, sys.unraisablehook = sys.unraisablehook, unheard
    before = signal.signal(signal.SIGALRM, interrupt), signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        answered()
        sys.unraisablehook = hook
        signal.signal(signal.SIGALRM, before[0])
        signal.signal(signal.SIGINT, before[1])


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let processes that are started here not hear Ctrl-C, nor that the terminal is gone.

    Who starts them must end them. (Training itself hears Ctrl-C, too.)
    """
    numbers = (signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def answered() -> None:
    """Stop raising KeyboardInterrupt."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def end_if_stopped(number: int) -> None:
    """End a command that this signal has stopped (0: none), ignoring a launcher's late Ctrl-C."""
    if number:
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        raise SystemExit(STOPPED + number)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    os.write(2, LINE)
    os._exit(INTERRUPTED)


def is_pythons_own() -> bool:
    """Return whether only Python, or `end_at_once`, answers Ctrl-C in this thread."""
    own = signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _end)
    return own and threading.current_thread() is threading.main_thread()
