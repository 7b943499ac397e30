"""Choose new folders and file names, and write tables."""

import csv
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from cbet_jax.config import SettingsError
from cbet_jax.runs.atomic_write import check_room, creating, open_text, replacing
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from experiments.common.screen import printable

RUNS = Path("runs")  # where new directories go, below the working directory


def new_folder(out: Path | None, name: str) -> Path:
    """Make the folder of a command's table and figure (`out`, or a new one in `runs/`).

    Raises:
        RunDirectoryError: the folder holds files of that name. OSError: it cannot be written to.
    """
    folder = out or new_in_runs(name)
    for path in (folder / f"{name}.csv", folder / f"{name}.png"):
        if os.path.lexists(path):
            raise RunDirectoryError(f"{path} already exists: choose another folder")
    check_room(folder)
    return folder


def new_in_runs(name: str) -> Path:
    """Make a new folder in `runs/`, named after the time, and numbered if that is taken."""
    folder = RUNS / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    return write_new(folder, lambda path: path.mkdir(parents=True))


def check_page(out: Path | None, *endings: str) -> None:
    """Refuse an `out` that is no new .html, or whose stem with an ending is taken."""
    if out is None:
        return
    if out.suffix.lower() != ".html":
        raise SettingsError(f"the name of --out must end in .html; {out} does not")
    for path in (out, *(out.with_name(out.stem + end) for end in endings)):
        if os.path.lexists(path):
            raise SettingsError(f"{path} already exists: choose another name")


def results_folder(out: Path | None, run: Path, named: str = "folder") -> Path:
    """Return the folder of a run's results (`out`, or the run's own) after writing to it on trial.

    Args:
        out: the folder (None: the run's).
        run: the run's directory.
        named: what --out names.

    Raises:
        OSError: the folder cannot be written to.
    """
    folder = out or run
    if out is None:
        RunDirectory(run).clean()
    try:
        check_room(folder)
    except OSError as error:
        error.add_note(f"name another {named} with --out")
        raise
    return folder


def given_run(path: Path) -> Path:
    """Return a run's directory; a policy of the package (`pretrained/NAME`) is unpacked first."""
    from cbet_jax.runs import pretrained  # imported here: it takes seconds

    return pretrained.unpack(path, RUNS).root if pretrained.is_named(path) else path


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """Name each run after its folder, with as many parent folders as tell all runs apart.

    The names are `printable`: pictures, tables and pages show them.
    """
    parts = [path.resolve().parts[1:] for path in paths]
    for number, path in enumerate(paths):
        if parts[number] in parts[:number]:
            raise SettingsError(f"{path} is given twice")
    depth = 1
    while len({each[-depth:] for each in parts}) < len(parts):
        depth += 1
    return [printable("/".join(each[-depth:])) for each in parts]


def is_hidden(path: Path) -> bool:
    """Return whether a file is hidden: files are while they are being written."""
    return path.name.startswith(".")


def unused(path: Path, *endings: str) -> Path:
    """Return the path, its stem numbered if the path or its stem with an ending is taken."""
    number, stem = 1, path.stem
    while any(os.path.lexists(path.with_name(stem + end)) for end in (path.suffix, *endings)):
        number += 1
        stem = f"{path.stem}-{number}"
    return path.with_name(stem + path.suffix)


def write_new(path: Path, write: Callable[[Path], object], *endings: str) -> Path:
    """Write a file under an unused name, and return its path.

    Args:
        path: the wanted path; its stem is numbered if it is taken.
        write: creates the file, or raises FileExistsError.
        *endings: endings of further files with the same stem.
    """
    while True:
        free = unused(path, *endings)
        try:
            write(free)
            return free
        except FileExistsError:
            if not os.path.lexists(free):  # something else is in the way
                raise


def write_table(
    path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]], *, again: bool = False
) -> Path:
    """Write a CSV file atomically, floats with six digits; only `again` replaces a file."""
    writing = replacing if again else creating
    with writing(path) as temporary, open_text(temporary) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow([f"{x:.6g}" if isinstance(x, float) else x for x in row])
    return path
