"""The directory of a run: its configuration, its lock, and the path of each file.

config.json    the run's settings; written first, and again if more --frames lengthen the run
manifest.json  what it ran on, and how fast
metrics.csv    one long table
checkpoints/   the last few states of the whole program
policies/      policies kept for good, without the rest of the program
best/          the policies that played best while they learnt a task
figures/       learning curves
method.py      a copy of the file that an own method is in; never run
world.py       likewise for a world (further files: world-2.py, ...)
.lock          locked while a process trains

Evaluations, `watch` and trackers (`tensorboard/`, `wandb/`) write their files beside these.

A directory may be damaged or come from a stranger: reading checks files, and writing follows no
links.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from cbet_jax.config import RunSettings
from cbet_jax.runs.atomic_write import check_room, delete_left_over, open_own, replacing
from cbet_jax.runs.reading import DIGEST, digest_of, read_json, reading, write_with_digest
from cbet_jax.runs.reading import RunDirectoryError as RunDirectoryError
from cbet_jax.settings.as_json import from_json, to_json

#: The frames of a checkpoint, the policies that played best while they learnt a task, or the newest
#: good checkpoint (None: the best policies of a task, else the newest checkpoint).
Checkpoint = int | Literal["best", "newest"] | None
BEST, NEWEST = "best", "newest"
FRAME_DIGITS = 13  # digits in a checkpoint's name, enough for `MOST_FRAMES`


class RunInUseError(RunDirectoryError):
    """A run directory that another process is training in."""


class RunDirectory:
    """Paths inside one run directory."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self.config = self.root / "config.json"
        self.manifest = self.root / "manifest.json"
        self.metrics = self.root / "metrics.csv"
        self.checkpoints = self.root / "checkpoints"
        self.policies = self.root / "policies"
        self.best = self.root / "best"
        self.figures = self.root / "figures"
        self.method = self.root / "method.py"
        self._lock = self.root / ".lock"
        self._handle = -1  # of the locked directory

    def __repr__(self) -> str:
        return f"RunDirectory({str(self.root)!r})"

    def create(self, settings: RunSettings) -> None:
        """Make the directory and write the configuration.

        Raises:
            RunDirectoryError: the directory holds something else.
        """
        self.refuse_run()
        create_with_record(self.config, "run", to_json(settings))

    def refuse_run(self) -> None:
        """Refuse a directory that holds a run, by a RunDirectoryError."""
        if self.config.exists():
            raise RunDirectoryError(
                f"{self.root} already holds a run: continue it with --resume, or choose another"
            )

    def keep_code(self, method: bytes | None, worlds: Iterable[bytes]) -> None:
        """Keep a copy of the files that an own method and own worlds are in."""
        copies = {} if method is None else {self.method: method}
        for number, content in enumerate(dict.fromkeys(worlds), 1):
            copies[self.world(number)] = content
        for place, content in copies.items():
            with replacing(place) as path:
                path.write_bytes(content)

    def world(self, number: int) -> Path:
        """Return the path of the copy of a world's file (the first number is 1)."""
        return self.root / ("world.py" if number == 1 else f"world-{number}.py")

    def settings(self) -> RunSettings:
        """Read the configuration that the run was started with.

        Raises:
            RunDirectoryError: it is missing or changed.
        """
        if not os.path.lexists(self.config):
            raise holds_no("run", self.config)
        with reading(self.config):
            nested = read_json(self.config)
            del nested[DIGEST]
            return from_json(RunSettings, nested)

    def write_settings(self, settings: RunSettings) -> None:
        """Write the configuration anew."""
        write_with_digest(self.config, to_json(settings))

    def clean(self) -> None:
        """Delete files that killed processes were writing, if there is a run."""
        if self.config.exists():
            for folder in (self.root, self.figures, self.checkpoints, self.policies, self.best):
                delete_left_over(folder)

    def saved_frames(self) -> int:
        """Return the frames of the newest checkpoint, or else of the newest kept policies."""
        saved = checkpoints(self.checkpoints) or checkpoints(self.policies)
        return frames_of(saved[-1]) if saved else 0

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from training in the directory.

        The system releases the lock when the process ends, even if killed.

        Raises:
            RunInUseError: another process trains in it. RunDirectoryError: it holds links.
        """
        self._refuse_links()
        with os.fdopen(open_own(self._lock), "r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunInUseError(
                    f"{self.root} is in use by another process that is training in it"
                ) from None
            self._locked = file.fileno()
            self._handle = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
            try:
                yield
            finally:
                os.close(self._handle)
                self._handle = -1

    @contextmanager
    def held(self) -> Iterator["RunDirectory"]:
        """Yield the locked directory, which stays the same one if it is moved meanwhile.

        Only Linux has such paths. Errors name the usual ones.
        """
        way = f"/proc/self/fd/{self._handle}"
        try:
            yield RunDirectory(Path(way)) if os.path.isdir(way) else self
        except OSError as error:
            if self._handle >= 0:
                self.check_lock()  # the cause, if it was deleted
            if error.filename is not None:
                error.filename = str(error.filename).replace(way, str(self.root))
            raise

    def check_lock(self) -> None:
        """Check that the locked file is still the one at its path.

        Raises:
            OSError: the directory was deleted or replaced; another process may train in it.
        """
        check_same(self._locked, self._lock)

    def is_locked(self) -> bool:
        """Return whether a process is training in the directory."""
        try:
            opened = os.open(self._lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:  # it has not begun
            return False
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(opened)
        return False

    def discard(self) -> None:
        """Delete the files of a run that was created but has not begun."""
        written = [self.config, self.manifest, self.metrics, self._lock, self.method]
        worlds = self.root.glob("world*.py")
        written += [p for p in worlds if re.fullmatch(r"world(-[0-9]+)?\.py", p.name)]
        for path in written:
            path.unlink(missing_ok=True)
        for path in checkpoints(self.checkpoints):
            shutil.rmtree(path)
        for folder in (self.checkpoints, self.root):
            with contextlib.suppress(OSError):  # it holds something else
                folder.rmdir()

    def _refuse_links(self) -> None:
        """Refuse links where a run writes, which would change files outside of the directory."""
        written = [self._lock, self.config, self.manifest, self.metrics]
        tracked = self.root / "wandb"  # makes links of its own in there
        written += [tracked, tracked / "run-id"]
        for folder in (
            *(self.checkpoints, self.policies, self.best, self.figures),
            self.root / "tensorboard",
        ):
            written.append(folder)
            if not folder.is_symlink():
                written += folder.rglob("*")
        for path in written:
            if path.is_symlink():
                raise RunDirectoryError(
                    f"{path} is a link: a run writes into its own directory only, so put what the "
                    "link leads to there, or delete the link"
                )


def checkpoints(folder: Path) -> list[Path]:
    """List the checkpoints in a folder, oldest first.

    Raises:
        UnreadableError: the folder cannot be read.
    """
    names = re.compile(rf"[0-9]{{{FRAME_DIGITS}}}")
    with reading(folder):
        found = folder.iterdir() if folder.is_dir() else ()
        return sorted(p for p in found if names.fullmatch(p.name) and p.is_dir())


def frames_of(checkpoint: Path) -> int:
    """Return the frames at which a checkpoint was saved."""
    return int(checkpoint.name)


def path_at(folder: Path, frames: int) -> Path:
    """Return the path of the checkpoint at a number of frames."""
    return folder / f"{frames:0{FRAME_DIGITS}d}"


def check_same(opened: int, path: Path) -> None:
    """Check that an open file is still the one at its path.

    Raises:
        OSError: it was deleted or replaced.
    """
    if not path.exists() or not os.path.samestat(os.fstat(opened), path.stat()):
        raise FileNotFoundError(
            errno.ENOENT, "it was deleted or replaced during the run", str(path)
        )


def create_with_record(record: Path, kind: str, content: dict[str, Any]) -> None:
    """Make a folder for a run, study or sweep, and write the record of it, unless it is there.

    Raises:
        RunDirectoryError: the folder holds something else. OSError: nothing can be written.
    """
    refuse_other_content(record, kind)
    check_room(record.parent)
    try:
        write_with_digest(record, content, again=False)
    except FileExistsError:  # maybe another process has just begun
        if digest_of(read_json(record)) != digest_of(content):
            raise RunDirectoryError(f"{record.parent} already holds another {kind}") from None


def refuse_other_content(record: Path, kind: str) -> None:
    """Refuse a folder that holds something else than a run, study or sweep with this record.

    Raises:
        RunDirectoryError: the folder is a file, or holds files but not this one.
    """
    root = record.parent
    if root.exists() and not root.is_dir():
        raise RunDirectoryError(f"{root} is a file, not a directory")
    if root.exists() and not record.exists() and any(p.name[0] != "." for p in root.iterdir()):
        raise RunDirectoryError(f"{root} is not empty and holds no {kind}: choose another")


def holds_no(kind: str, record: Path) -> RunDirectoryError:
    """Return the error that a folder lacks its record."""
    return RunDirectoryError(f"{record.parent} holds no {kind} (no {record.name})")
