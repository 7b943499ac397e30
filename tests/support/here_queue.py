"""A queue whose jobs run in this process, so that stand-ins reach them."""

import json
import signal
import uuid
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr
from importlib import import_module
from pathlib import Path

from experiments.sweeps.jobs import Job
from experiments.sweeps.queues import Submitted, work_of


class HereQueue:
    """Does each job at once, when it is submitted."""

    poll_seconds = 0.0
    places: int | None = 1

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def submit(self, jobs: Sequence[Job], place: int, places: int) -> Submitted:
        """Do the work; what stops it stops the executor, too."""
        name = uuid.uuid4().hex
        answer, errors = (self._folder / f"{name}{suffix}" for suffix in (".end", ".err"))
        work, status = work_of(jobs, answer, None), 0
        with open(errors, "w") as file, redirect_stderr(file):
            try:
                import_module(work.module).main(work.words())
            except SystemExit as end:
                status = int(end.code or 0)
        if status > 128:
            signal.raise_signal(signal.Signals(status - 128))
        answer.write_text(json.dumps({"status": status}))
        return Submitted(name, lambda: True, answer, errors, None)

    def under_way(self, job: Job) -> None:
        """Return None: nothing is left."""

    def leave(self, submitted: Iterable[Submitted]) -> None:
        """Do nothing: all is over."""
