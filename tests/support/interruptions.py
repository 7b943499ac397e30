"""Ctrl-C at a known moment of a run."""

import os
import signal

from cbet_jax.runs import metrics_table


def interrupt_after(monkeypatch, chunks: int, number: int = signal.SIGINT) -> None:
    """Send this process a signal while it writes the metrics of a chunk."""
    append, calls = metrics_table.Table.append, []

    def append_and_interrupt(*arguments):
        calls.append(1)
        if len(calls) == chunks:
            os.kill(os.getpid(), number)
        return append(*arguments)

    monkeypatch.setattr(metrics_table.Table, "append", append_and_interrupt)
