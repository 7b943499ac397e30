"""Where commands write: new folders and file names, tables and figures."""

import contextlib
import csv
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbet_jax.config import SettingsError
from cbet_jax.runs.atomic_write import check_room, creating, replacing
from cbet_jax.runs.directory import RunDirectoryError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = Path("runs")  # where new directories go, below the working directory


def new_folder(out: Path | None, name: str) -> Path:
    """Make the folder that a command writes its table and its figure to.

    Args:
        out: the folder (None: a new one in `runs/`).
        name: begins the names of a new folder and of the files.

    Raises:
        RunDirectoryError: it holds such files already. OSError: it cannot be written to.
    """
    folder = out or RUNS / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    for path in (folder / f"{name}.csv", folder / f"{name}.png"):
        if os.path.lexists(path):
            raise RunDirectoryError(f"{path} already exists: choose another folder")
    check_room(folder)
    return folder


def new_page(out: Path | None, default: Path) -> Path:
    """Return the file that a page of HTML goes to.

    Args:
        out: the file (None: the default, with a number if it is taken).
        default: its path.

    Raises:
        SettingsError: it is there, or is no .html.
    """
    if out is None:
        return unused(default)
    if out.suffix.lower() != ".html":
        raise SettingsError(f"the name of --out must end in .html; {out} does not")
    if out.exists():
        raise SettingsError(f"{out} already exists: choose another name")
    return out


def results_folder(out: Path | None, run: Path) -> Path:
    """Return the folder that results of a run go to, after writing to it on trial.

    Args:
        out: the folder (None: the run's own).
        run: the run's directory.

    Raises:
        OSError: it cannot be written to.
    """
    folder = out or run
    try:
        check_room(folder)
    except OSError as error:
        error.add_note("name another folder with --out")
        raise
    return folder


def given_run(path: Path) -> Path:
    """Return the directory of a run that a command line names.

    A pre-trained policy of the package (`pretrained/NAME`) is unpacked into `runs/` first.

    Raises:
        RunDirectoryError: the package has no such policy.
    """
    from cbet_jax.runs import pretrained  # imported here: it takes seconds

    return pretrained.unpack(path, RUNS).root if pretrained.is_named(path) else path


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """Return a name for each run: its folder's, after the folders above it that tell all apart.

    Raises:
        SettingsError: a run is given twice.
    """
    parts = [path.resolve().parts[1:] for path in paths]
    for number, path in enumerate(paths):
        if parts[number] in parts[:number]:
            raise SettingsError(f"{path} is given twice")
    depth = 1
    while len({each[-depth:] for each in parts}) < len(parts):
        depth += 1
    return ["/".join(each[-depth:]) for each in parts]


def is_hidden(path: Path) -> bool:
    """Return whether a file is hidden, as one is that is still being written."""
    return path.name.startswith(".")


def unused(path: Path, *endings: str) -> Path:
    """Return the path, with a number after its stem if the path is taken.

    Args:
        path: of a file to write.
        *endings: of further files that are named after its stem, such as `-maps.png`.
    """
    number, stem = 1, path.stem
    while any(os.path.lexists(path.with_name(stem + end)) for end in (path.suffix, *endings)):
        number += 1
        stem = f"{path.stem}-{number}"
    return path.with_name(stem + path.suffix)


def write_new(path: Path, write: Callable[[Path], object], *endings: str) -> Path:
    """Write a file under a name that is free, whoever else is looking for one.

    Args:
        path: of the file; it gets a number after its stem if the path is taken.
        write: makes the file, and raises FileExistsError if it is there by then.
        *endings: of further files that will be named after its stem.

    Returns:
        The file's path.
    """
    while True:
        free = unused(path, *endings)
        with contextlib.suppress(FileExistsError):
            write(free)
            return free


def write_table(
    path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]], *, again: bool = False
) -> Path:
    """Write a CSV file, complete or not at all, numbers with six digits.

    Args:
        path: of the file, which is new, unless it is written again.
        header: its first line.
        rows: the others.
        again: whether it may replace what this process has written there before.
    """
    writing = replacing if again else creating
    with writing(path) as temporary, open(temporary, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow([f"{x:.6g}" if isinstance(x, float) else x for x in row])
    return path


def write_figure(path: Path, figure: "Figure", dpi: int = 110) -> Path:
    """Write a PNG that is either complete or absent."""
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=dpi, format="png")
    return path
