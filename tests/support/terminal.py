"""Run a program in a terminal of its own, as a person at a keyboard would."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

BEGIN = "import os, sys; os.login_tty(0); os.execvp(sys.argv[1], sys.argv[1:])"


class Shown(NamedTuple):
    """How a program ended, and what stood on the screen."""

    status: int
    text: str


def run_in_terminal(command: Sequence[str], seconds: float, **variables: str) -> Shown:
    """Run a command in a terminal, and kill it after some seconds.

    Args:
        command: words.
        seconds: that it may take.
        **variables: of the environment, besides those of this process.
    """
    ours, theirs = pty.openpty()
    in_its_own = [sys.executable, "-c", BEGIN, *command]
    environment = {**os.environ, "TERM": "xterm", **variables}
    process = subprocess.Popen(
        in_its_own, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    shown, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        if not select.select([ours], [], [], 0.1)[0]:
            continue
        try:
            shown += os.read(ours, 65536)
        except OSError:  # the last one who could write is gone
            break
    else:
        process.kill()
    os.close(ours)
    return Shown(process.wait(timeout=seconds), shown.decode(errors="replace"))
