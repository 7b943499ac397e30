"""Ctrl-C where Python's own answer to it gets lost."""

import signal
import subprocess
import sys

import pytest

from experiments.common import interrupts

AS_IN_A_SHELL = """
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
"""
SWALLOWS = """
from experiments.common import cli
with cli.user_errors():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    except BaseException:
        print("swallowed")
    time.sleep(60)
"""
# As JAX does while it collects garbage; another error that is lost there is still told.
COLLECTS = """
import gc, sys
from experiments.common import cli
def collected(phase, info):
    if phase == "stop":
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
def told(lost):
    print(lost.exc_type.__name__, flush=True)
class Lost:
    def __del__(self):
        raise ValueError
sys.unraisablehook = told
with cli.user_errors():
    Lost()
    gc.callbacks.append(collected)
    gc.collect()
    gc.callbacks.clear()
    time.sleep(60)
"""
STARTS = """
import sys
sys.argv = ["-m"]  # as Python sets it while it looks for the module
import experiments
try:
    os.kill(os.getpid(), signal.SIGINT)
except BaseException:
    print("swallowed")
"""
# What has its own answer to Ctrl-C, such as a training that draws its film at the end, continues.
NESTED = """
import threading
from cbet_jax.runs import signals
from experiments.common import cli
with cli.user_errors():
    try:
        with cli.user_errors():
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            signals.interruptible(lambda: time.sleep(60))
    except SystemExit as end:
        print("ended with", end.code, flush=True)
        os._exit(end.code)
"""


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        (NESTED, "ended with 130\n"),
        (SWALLOWS, "swallowed\n"),
        (COLLECTS, "ValueError\n"),
        (STARTS, ""),
    ],
)
def test_an_interrupt_that_a_library_swallows_ends_the_command(code, printed):
    ended = subprocess.run(
        [sys.executable, "-c", AS_IN_A_SHELL + code], capture_output=True, text=True, timeout=50
    )
    assert (ended.returncode, ended.stderr) == (interrupts.INTERRUPTED, "error: interrupted\n")
    assert ended.stdout == printed


def test_who_answers_interrupts_already_goes_on_doing_so():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(True))
    try:
        with interrupts.insistent():
            interrupts.end_at_once()
            signal.raise_signal(signal.SIGINT)
        assert len(heard) == 1
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_ctrl_c_that_comes_when_all_is_saved_changes_nothing():
    program = """
import atexit, signal
from experiments.common.interrupts import end_if_stopped
atexit.register(signal.raise_signal, signal.SIGINT)  # as `uv run` may hand it on
end_if_stopped(0)
end_if_stopped(signal.SIGINT)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert ended.returncode == interrupts.STOPPED + signal.SIGINT
    assert ended.stderr == b""
