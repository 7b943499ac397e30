"""One trial: work in a process of its own, and what it left."""

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

LIMIT_SECONDS = 240.0  # for each process, on a busy machine
KNOWN_STATUSES = (0, 2, 3)


class Trial(NamedTuple):
    """Something that may go wrong."""

    group: str
    name: str
    work: Callable[[Path], str]  # given an empty folder, returns what went wrong, or ""


class Ended(NamedTuple):
    """How a process ended."""

    status: int | None  # exit status, or a signal's number, negated; None: it took too long
    out: str
    err: str


def run(work: Callable[[], object], folder: Path) -> Ended:
    """Do work, such as a command's `main`, in a folder and in a forked process."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process == 0:
            os.setsid()
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            os.chdir(folder)
            os._exit(_status_of(work))
        status = _wait(process)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        return Ended(status, *texts)


def _wait(process: int) -> int | None:
    """Return the status of a process, and end it and its children when its time is over."""
    deadline, ended, code = time.monotonic() + LIMIT_SECONDS, 0, 0
    while not ended and time.monotonic() < deadline:
        time.sleep(0.01)
        ended, code = os.waitpid(process, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    if not ended:
        os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(code) if ended else None


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


def results(trials: Sequence[Trial], side_by_side: int) -> Iterator[tuple[Trial, str]]:
    """Try all, each in a process and a folder of its own; yield what went wrong with each."""
    _waiting[:] = trials  # forked processes find them here: they cannot be pickled
    pool = multiprocessing.get_context("fork").Pool(side_by_side, maxtasksperchild=1)
    with pool:
        for number, found in pool.imap_unordered(_try, range(len(trials))):
            yield trials[number], found


_waiting: list[Trial] = []


def _try(number: int) -> tuple[int, str]:
    with tempfile.TemporaryDirectory(prefix="torture-", ignore_cleanup_errors=True) as folder:
        try:
            return number, _waiting[number].work(Path(folder))
        except BaseException as error:
            problem = f"the trial itself failed: {error!r} {traceback.format_exc()[-300:]}"
            return number, problem
