"""Metrics on disk: one long table of (seed, frames, name, value), and its means.

The table grows by a chunk at a time. A resumed run first cuts it back to its length at the
checkpoint, so the finished table is byte for byte an unbroken run's.

No pandas: reading and writing are ten lines each, and it would add 60 MB to an installation.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from cbet_jax.runs.directory import RunDirectoryError

HEADER = "seed,frames,name,value\n"

Chunk = Mapping[str, np.ndarray]  # name -> float32[iterations, seeds]; NaN: there is no data


class Column(NamedTuple):
    """One metric of one seed over time."""

    frames: np.ndarray  # int64[rows]
    values: np.ndarray  # float64[rows]


class Table:
    """A CSV file that chunks of metrics are appended to."""

    def __init__(self, file: BinaryIO, first_seed: int) -> None:
        self._file = file
        self._first_seed = first_seed

    def append(self, chunk: Chunk, frames: int, frames_per_iteration: int) -> int:
        """Write one chunk, without the values that are NaN.

        Args:
            chunk: name -> float32[iterations, seeds].
            frames: played by each seed before the chunk.
            frames_per_iteration: played by each seed in one iteration.

        Returns:
            The length of the table in bytes.
        """
        length, seeds = next(iter(chunk.values())).shape
        # str() of a float32 is the shortest text that reads back as the same number.
        rows = [
            f"{self._first_seed + seed},{frames + (i + 1) * frames_per_iteration},{name},"
            f"{chunk[name][i, seed]!s}\n"
            for i in range(length)
            for seed in range(seeds)
            for name in sorted(chunk)
            if not np.isnan(chunk[name][i, seed])
        ]
        self._file.write("".join(rows).encode())
        return self._file.tell()

    def sync(self) -> None:
        """Bring all rows to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def table(path: Path, first_seed: int, length: int) -> Iterator[Table]:
    """Open a table to append to.

    Args:
        path: of the table.
        first_seed: of the run.
        length: in bytes, that the table is cut back to (0: a new table).

    Raises:
        RunDirectoryError: the file is shorter than that.
    """
    found = path.stat().st_size if path.exists() else 0
    if found < length:
        raise RunDirectoryError(
            f"{path} has {found} bytes, but had {length} when the checkpoint was saved"
        )
    with open(path, "ab") as file:
        file.truncate(length)
        file.seek(length)
        if length == 0:
            file.write(HEADER.encode())
        yield Table(file, first_seed)


def read(path: Path) -> dict[str, dict[int, Column]]:
    """Read a table: name -> seed -> column."""
    rows: dict[str, dict[int, list[tuple[int, float]]]] = {}
    with open(path) as file:
        next(file, None)  # the header; a run that was killed early has none
        for line in file:
            seed, frames, name, value = line.rstrip("\n").split(",")
            rows.setdefault(name, {}).setdefault(int(seed), []).append((int(frames), float(value)))
    return {
        name: {
            seed: Column(np.array([f for f, _ in pairs]), np.array([v for _, v in pairs]))
            for seed, pairs in seeds.items()
        }
        for name, seeds in rows.items()
    }


def means(chunk: Chunk) -> dict[str, float]:
    """Return the mean of each metric over a chunk and all seeds, where it has data."""
    return {
        name: float(np.nanmean(values))
        for name, values in chunk.items()
        if not np.isnan(values).all()
    }
