"""Requests to stop, also while Python itself does nothing."""

import signal
import threading

import pytest

from cbet_jax.runs import signals
from cbet_jax.runs.signals import SIGNALS, interruptible, stop_on_signals


def interrupt_when(begun: threading.Event, *after: threading.Event) -> threading.Thread:
    """Send this process Ctrl-C once work has begun, then let the work end."""

    def send() -> None:
        begun.wait(timeout=30)
        signal.raise_signal(signal.SIGINT)
        for event in after:
            event.set()

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def test_a_signal_is_answered_while_something_long_runs(capsys):
    begun, answered = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        assert answered.wait(timeout=30)
        return "done"

    with stop_on_signals() as stop:
        stop.waits_for = "compiling"
        reply = stop.reply

        def reply_and_go_on() -> None:
            reply()
            answered.set()

        stop.reply = reply_and_go_on
        sender = interrupt_when(begun)
        assert interruptible(work) == "done"
        sender.join()
    assert stop.signal == signal.SIGINT
    assert capsys.readouterr().out == "stopping when compiling is done; another Ctrl-C ends it\n"


def test_whoever_is_told_twice_is_asked_once(capsys):
    """`uv run` hands on what the terminal has told the process already."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    with stop_on_signals("saving") as stop:
        for _ in range(2):
            signal.raise_signal(signal.SIGTERM)
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.raise_signal(number)
    assert stop.signal == signal.SIGTERM
    assert capsys.readouterr().out == "stopping when saving is done; another Ctrl-C ends it\n"
    assert {number: signal.getsignal(number) for number in SIGNALS} == before


def test_a_later_interrupt_means_what_it_meant_before(monkeypatch):
    def interrupt_thrice() -> None:
        with stop_on_signals() as stop:
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)
            assert stop.signal == signal.SIGINT
            monkeypatch.setattr(signals, "SAME_WITHIN", 0.0)
            signal.raise_signal(signal.SIGINT)

    own = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupt_thrice()
    finally:
        signal.signal(signal.SIGINT, own)


def test_errors_of_the_work_are_raised():
    def work() -> None:
        raise ValueError("no room")

    with pytest.raises(ValueError, match="no room"):
        interruptible(work)
