"""One trial: work in a process of its own, and what it left."""

import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

LIMIT_SECONDS = 240.0  # on a busy machine; of each process
KNOWN_STATUSES = (0, 2, 3)


class Trial(NamedTuple):
    """Something that may go wrong."""

    group: str
    name: str
    work: Callable[[Path], str]  # given an empty folder, returns what went wrong ("": nothing)


class Ended(NamedTuple):
    """How a process ended."""

    status: int | None  # exit status, or a signal's number, negated; None: it took too long
    out: str
    err: str


def run(
    work: Callable[[], object], folder: Path, environment: Mapping[str, str] | None = None
) -> Ended:
    """Do work in a forked process that has imported all modules already.

    Args:
        work: as a command's `main`.
        folder: the working directory.
        environment: further variables.
    """
    files = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        os.setsid()
        for number, file in enumerate(files, 1):
            os.dup2(file.fileno(), number)
        os.chdir(folder)
        os.environ.update(environment or {})
        os._exit(_status_of(work))
    deadline = time.monotonic() + LIMIT_SECONDS
    status: int | None = None
    while status is None and time.monotonic() < deadline:
        ended, code = os.waitpid(process, os.WNOHANG)
        status = os.waitstatus_to_exitcode(code) if ended else None
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)  # it, or children that it has left
    if status is None:
        os.waitpid(process, 0)
    texts = []
    for file in files:
        file.seek(0)
        texts.append(file.read().decode(errors="replace"))
        file.close()
    return Ended(status, *texts)


def _status_of(work: Callable[[], object]) -> int:
    try:
        work()
        status: object = 0
    except SystemExit as stop:
        status = stop.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            status = 120  # as Python's own exit does
    return status if isinstance(status, int) else 1


def trouble(ended: Ended, statuses: tuple[int, ...] = KNOWN_STATUSES) -> str:
    """Return what is wrong with how a command ended: nothing may be silent, or long."""
    lines = ended.err.splitlines()
    if ended.status is None:
        return f"ran for more than {LIMIT_SECONDS:.0f} s"
    if "Traceback" in ended.out + ended.err:
        return f"a traceback, last: {lines[-1] if lines else ''}"
    if ended.status not in statuses:
        return f"exit status {ended.status}: {' / '.join(lines[-2:])}"
    errors = [line for line in lines if line.startswith("error: ")]
    if ended.status in (1, 2, 3) and (len(errors) != 1 or len(lines) > 2):
        return f"exit status {ended.status} with {len(errors)} error lines of {len(lines)}"
    return ""


def results(trials: Iterable[Trial], side_by_side: int) -> Iterator[tuple[Trial, str]]:
    """Try all, each in a process and a folder of its own; yield what went wrong with each."""
    running: dict[int, tuple[Trial, Path]] = {}
    waiting = iter(trials)
    while True:
        while len(running) < side_by_side and (trial := next(waiting, None)):
            folder = Path(tempfile.mkdtemp(prefix="torture-"))
            process = os.fork()
            if process == 0:
                os._exit(_try(trial, folder))
            running[process] = trial, folder
        if not running:
            return
        process, code = os.wait()
        if process in running:
            trial, folder = running.pop(process)
            said = folder / "said.json"
            found = json.loads(said.read_text()) if said.is_file() else f"the trial died ({code})"
            shutil.rmtree(folder, ignore_errors=True)
            yield trial, found


def _try(trial: Trial, folder: Path) -> int:
    place = folder / "place"
    place.mkdir()
    try:
        found = trial.work(place)
    except BaseException as error:
        found = f"the trial itself failed: {error!r} {traceback.format_exc()[-300:]}"
    (folder / "said.json").write_text(json.dumps(found))
    return 0
