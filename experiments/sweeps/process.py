"""A training command in its own process, as a job that can be preempted.

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
from pathlib import Path
from types import FrameType
from typing import Any


class Training:
    """Train the runs of one program in a process, until they end or the job has to.

    A SLURM job that is preempted, or whose time is up, lets the process save; submitit then puts
    it into the queue again, and the run continues from there.
    """

    def __init__(
        self,
        module: str,
        runs: Sequence[tuple[Sequence[str], Path]],
        answer: Path,
        parent: int | None,
    ) -> None:
        """Note what is to be done.

        Args:
            module: the training command.
            runs: the words of each run's command line, and a file; if it exists, the run is there
                to be continued.
            answer: the file that the exit status goes to, as JSON.
            parent: the process on this machine without which the job ends, after saving (None: it
                needs none).
        """
        self.module = module
        self.runs = runs
        self.answer = answer
        self.parent = parent
        self._process: subprocess.Popen[bytes] | None = None
        self._asked_to_stop = False
        self._told_to_stop = False

    def __call__(self) -> int:
        """Train, and return the command's exit status (a signal's number, negated)."""
        signal.signal(signal.SIGTERM, self._ask_to_stop)
        words = [
            [*words, *(["--resume"] if resumes.exists() else [])] for words, resumes in self.runs
        ]
        program = [sys.executable, "-m", self.module, *itertools.chain(*words)]
        self._process = subprocess.Popen(program)
        while (status := self._process.poll()) is None:
            if self._asked_to_stop or (self.parent and not is_alive(self.parent)):
                self._tell_to_stop(self._process)
            time.sleep(0.1)
        temporary = self.answer.with_suffix(".tmp")
        temporary.write_text(json.dumps({"status": status}))
        os.replace(temporary, self.answer)
        return status

    def checkpoint(self) -> Any:
        """Let the process save and end, and return the job that submitit is to submit again."""
        import submitit  # imported here: it is an extra, and calls this itself

        if self._process:
            self._tell_to_stop(self._process)
            # Not Popen's own wait: this is a signal's handler, which may have interrupted it.
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        again = Training(self.module, self.runs, self.answer, self.parent)
        return submitit.helpers.DelayedSubmission(again)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return {
            "module": self.module,
            "runs": [(list(words), str(resumes)) for words, resumes in self.runs],
            "answer": str(self.answer),
            "parent": self.parent,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Training":
        """Return the job that `to_json` describes."""
        runs = [(words, Path(resumes)) for words, resumes in content["runs"]]
        return cls(content["module"], runs, Path(content["answer"]), content["parent"])

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
    sys.exit(abs(Training.from_json(json.loads(Path(sys.argv[1]).read_text()))()))
