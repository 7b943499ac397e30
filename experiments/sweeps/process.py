"""A command in its own process, as a job that can be preempted.

Jobs import this file, or start it: nothing in it takes long to import.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)  # that submitit may ask SLURM for


class CommandLine(NamedTuple):
    """A part of a process's command line."""

    beginning: Sequence[str]  # words
    continuing: Sequence[str]  # words, if there is something to continue
    begun: str  # the file that says so


@dataclass
class Work:
    """Jobs that one process does, until they end or it has to.

    A SLURM job that is preempted, or whose time is up, lets the process save; submitit then puts
    it into the queue again, and it continues from there.
    """

    module: str  # the command
    lines: Sequence[CommandLine]
    answer: str  # the file that the exit status goes to, as JSON
    parent: int | None = None  # the process without which the job ends, after saving

    def __post_init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._asked_to_stop = False
        self._told_to_stop = False

    def __call__(self) -> int:
        """Work, and return the command's exit status (a signal's number, negated)."""
        signal.signal(signal.SIGTERM, self._ask_to_stop)
        # SLURM tells all processes that the time is up; only `checkpoint` is to hear it.
        signal.pthread_sigmask(signal.SIG_BLOCK, WARNINGS)
        self._process = subprocess.Popen([sys.executable, "-m", self.module, *self.words()])
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WARNINGS)
        while (status := self._process.poll()) is None:
            if self._asked_to_stop or (self.parent and not is_alive(self.parent)):
                self._tell_to_stop(self._process)
            time.sleep(0.1)
        temporary = f"{self.answer}.tmp"
        Path(temporary).write_text(json.dumps({"status": status}))
        os.replace(temporary, self.answer)
        return status

    def words(self) -> list[str]:
        """Return the words of the command line, as they have to be now."""
        lines = (
            line.continuing if os.path.exists(line.begun) else line.beginning for line in self.lines
        )
        return list(itertools.chain(*lines))

    def checkpoint(self) -> Any:
        """Let the process save and end, and return the job that submitit is to submit again."""
        import submitit  # imported here: it is an extra, and calls this itself

        if self._process:
            self._tell_to_stop(self._process)
            # Not Popen's own wait: this is a signal's handler, which may have interrupted it.
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        again = Work(self.module, self.lines, self.answer, self.parent)
        return submitit.helpers.DelayedSubmission(again)

    def to_json(self) -> str:
        """Return what `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Work":
        """Return the work that `to_json` describes."""
        content = json.loads(text)
        lines = [CommandLine(*line) for line in content.pop("lines")]
        return cls(**content, lines=lines)

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._asked_to_stop = True

    def _tell_to_stop(self, process: "subprocess.Popen[bytes]") -> None:
        if not self._told_to_stop:  # told twice, it would not save
            self._told_to_stop = True
            process.terminate()


def is_alive(process: int) -> bool:
    """Return whether a process of this machine has not ended, nor been killed."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):  # not Linux, or gone meanwhile
        return True
    return state not in ("Z", "X")  # dead, only its parent has not heard of it yet


if __name__ == "__main__":
    if cores := sys.argv[2]:
        os.sched_setaffinity(0, map(int, cores.split(",")))
    sys.exit(abs(Work.from_json(Path(sys.argv[1]).read_text())()))
