"""Metrics on disk: one long table of (seed, frames, name, value), and its means.

A resumed run first cuts the table back to its length at the checkpoint, so the finished table is
byte for byte an unbroken run's. Each checkpoint has a digest of the table, which detects damage.

No pandas: reading and writing are ten lines each, and it would add 60 MB to an installation.
"""

import csv
import hashlib
import io
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from cbet_jax.runs.atomic_write import open_own, replacing
from cbet_jax.runs.directory import RunDirectory, check_same, checkpoints
from cbet_jax.runs.metrics import episodes_of
from cbet_jax.runs.reading import UnreadableError, read_bytes, reading

if TYPE_CHECKING:
    from cbet_jax.runs.checkpoint import Position

HEADER = "seed,frames,name,value\n"
Chunk = Mapping[str, np.ndarray]  # name -> float32[iterations, seeds] (NaN: no data)


class Column(NamedTuple):
    """One metric of one seed over time."""

    frames: np.ndarray  # int64[rows]
    values: np.ndarray  # float64[rows]
    episodes: np.ndarray | None = None  # [rows]: episodes behind each mean, if known

    @property
    def weights(self) -> np.ndarray:
        """The weight of each value in a mean."""
        return np.ones(len(self.values)) if self.episodes is None else self.episodes


class Table:
    """A CSV file that chunks of metrics are appended to."""

    def __init__(self, path: Path, file: BinaryIO, first_seed: int) -> None:
        self._path = path
        self._file = file
        self._first_seed = first_seed
        self._digest = hashlib.sha256(file.read())

    @property
    def digest(self) -> str:
        """SHA-256 of all rows until now."""
        return self._digest.hexdigest()

    def append(self, chunk: Chunk, frames: int, frames_per_iteration: int) -> int:
        """Write a chunk, after each seed has played `frames`, without NaN values.

        Returns:
            The length of the table in bytes.
        """
        length, seeds = next(iter(chunk.values())).shape
        # str() of a float32 is the shortest text that reads back as the same number.
        content = lines(
            (self._first_seed + seed, frames + (i + 1) * frames_per_iteration, name, str(value))
            for i in range(length)
            for seed in range(seeds)
            for name in sorted(chunk)
            if not np.isnan(value := chunk[name][i, seed])
        )
        self._digest.update(content)
        self._file.write(content)
        return self._file.tell()

    def sync(self) -> None:
        """Flush all rows to the disk.

        Raises:
            OSError: they cannot be written, or the file was deleted or replaced.
        """
        self._file.flush()
        os.fsync(self._file.fileno())
        check_same(self._file.fileno(), self._path)


def lines(rows: Iterable[tuple[object, ...]]) -> bytes:
    """Return rows of the table as its file has them."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


@contextmanager
def table(path: Path, first_seed: int, position: "Position") -> Iterator[Table]:
    """Open a run's table to append to, cut back to a checkpoint's position.

    Raises:
        UnreadableError: it does not hold the rows until then.
    """
    kept = rows_until(path, position) if position.metrics_bytes else HEADER.encode()
    # A new file, since the old one may have other names (hard links).
    with replacing(path) as temporary:
        temporary.write_bytes(kept)
    with os.fdopen(open_own(path), "r+b") as file:
        yield Table(path, file, first_seed)


def rows_until(path: Path, position: "Position") -> bytes:
    """Return the rows that a table had at a checkpoint.

    Raises:
        UnreadableError: it does not hold them any more.
    """
    rows = read_bytes(path, position.metrics_bytes) if path.exists() else b""
    if position.metrics_bytes and rows_digest(rows) != position.metrics_digest:
        raise UnreadableError(
            f"{path} is damaged: it is not what was written by {position.frames:,} frames"
        )
    return rows


def rows_digest(rows: bytes) -> str:
    """Return the digest of a table that a checkpoint keeps."""
    return hashlib.sha256(rows).hexdigest()


def read(path: Path) -> dict[str, dict[int, Column]]:
    """Read a table: name -> seed, in their order -> column.

    Raises:
        UnreadableError: a row cannot be read.
    """
    rows: dict[str, dict[int, list[tuple[int, float]]]] = {}
    # Without the last line, which a kill may have cut off.
    whole = read_bytes(path, sys.maxsize).decode(errors="replace").rpartition("\n")[0].split("\n")
    reader = csv.reader(whole[1:])
    try:
        for seed, frames, name, value in reader:
            if abs(number := float(value)) < np.inf:  # the last ones of a diverged run are not
                rows.setdefault(name, {}).setdefault(int(seed), []).append((int(frames), number))
    except (ValueError, csv.Error):
        raise UnreadableError(f"{path} is damaged in line {reader.line_num + 1}") from None
    with reading(path):
        table = {
            name: {
                seed: Column(np.array([f for f, _ in pairs], int), np.array([v for _, v in pairs]))
                for seed, pairs in sorted(seeds.items())
            }
            for name, seeds in rows.items()
        }
    return {
        name: {
            seed: _with_episodes(column, table.get(episodes_of(name), {}).get(seed))
            for seed, column in seeds.items()
        }
        for name, seeds in table.items()
    }


def _with_episodes(column: Column, ended: Column | None) -> Column:
    """Return a column with the episodes of another, if it has them all."""
    if ended is None or not np.isin(column.frames, ended.frames).all():
        return column
    return column._replace(episodes=ended.values[np.searchsorted(ended.frames, column.frames)])


def read_verified(directory: RunDirectory) -> dict[str, dict[int, Column]]:
    """Read a run's table, checked against the newest good checkpoint.

    Raises:
        UnreadableError: it is damaged.
    """
    from cbet_jax.runs.checkpoint import DamagedCheckpointError, read_arrays  # takes seconds

    for path in reversed(checkpoints(directory.checkpoints)):
        try:
            _, position = read_arrays(path, ())
        except DamagedCheckpointError:
            continue
        rows_until(directory.metrics, position)
        break
    return read(directory.metrics)


def means(chunk: Chunk) -> dict[str, float]:
    """Return the mean of each metric over a chunk and all seeds, where it has data.

    Means over episodes are weighted by the number of episodes, where known.
    """
    found = {}
    for name, values in chunk.items():
        known = ~np.isnan(values)
        if known.any():
            episodes = chunk.get(episodes_of(name), np.ones_like(values))[known]
            weights = episodes if episodes.any() else None
            found[name] = float(np.average(values[known], weights=weights))
    return found
