"""How well agents play their task while they learn it: their best policies, and when to stop."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cbet_jax.config import SettingsError
from cbet_jax.runs import checkpoint, metrics_table
from cbet_jax.runs.checkpoint import Loaded, Position
from cbet_jax.runs.metrics_table import Chunk
from cbet_jax.runs.reading import reading

# Means are over the chunks of these last frames, or of more until they hold as many episodes as
# there are actors: episodes that fail take longer, and may all end together.
RECENT_FRAMES = 200_000
FALLEN = 0.5  # a success below this share of the best one is a fall,
LEAST_SUCCESS = 0.1  # if the best one was at least this
#: names of arrays [seeds] beside the best policies
RETURN, SUCCESS, FRAMES = "best_return", "best_success", "best_frames"
READ = ("episodes", "success", "extrinsic_return")  # metrics


@dataclass(frozen=True)
class EarlyEnd:
    """When a task ends before its last frame; all seeds must agree. It changes no numbers."""

    success: float | None = None  # end if the mean success is at least this (None: do not)
    frames: int = 500_000  # over so many last frames
    without_success: int | None = None  # end if so many frames brought no success (None: do not)

    def refuse_unmeasured(self, metrics: Collection[str]) -> None:
        """Refuse, by a SettingsError, to wait for a success that is not measured."""
        if "success" not in metrics and (self.success, self.without_success) != (None, None):
            raise SettingsError(
                "these worlds measure no success: leave --until-success and --without-success out"
            )


TO_THE_END = EarlyEnd()


class _Episodes(NamedTuple):
    """What ended in one chunk; arrays [seeds] of sums over its episodes."""

    frames: int  # of each seed at the chunk's end
    episodes: np.ndarray
    success: np.ndarray
    extrinsic_return: np.ndarray


class TaskRecord:
    """The record of one run's agents; it follows from the rows of `metrics.csv`.

    Nothing counts before as many episodes have ended as there are actors: the first to end are
    short ones, successes.

    Args:
        seeds: number of agents.
        actors: of each.
        early_end: when to stop.
    """

    def __init__(self, seeds: int, actors: int, early_end: EarlyEnd = TO_THE_END) -> None:
        self.early_end = early_end
        self._actors = actors
        self._missing = np.full(seeds, float(actors))  # episodes of the first round
        self.best: dict[str, np.ndarray] = {}  # policies [seeds, ...] by name, and their records
        self.best_return = np.full(seeds, -np.inf)
        self.best_success = np.zeros(seeds)
        self.best_frames = np.zeros(seeds, np.int64)
        self.is_new = False  # whether a policy became the best since the last save
        self._chunks: list[_Episodes] = []
        self._begun = 0  # frames before the first of them
        self._last_success = 0  # frames at which a seed last succeeded
        self._frames = 0

    def add(self, frames: int, chunk: Chunk) -> np.ndarray:
        """Add a chunk that ends at `frames`; return which seeds play as well as ever."""
        if not {*READ} <= chunk.keys():  # worlds may not measure them
            return np.zeros(len(self.best_return), bool)
        ended = chunk["episodes"]
        sums = [np.nansum(chunk[name] * ended, 0) for name in ("success", "extrinsic_return")]
        self._frames = frames
        if sums[0].any():
            self._last_success = frames
        self._missing -= ended.sum(0)
        if (self._missing > 0).any():
            self._begun = frames
            return np.zeros(len(self.best_return), bool)
        self._chunks.append(_Episodes(frames, ended.sum(0), *sums))
        now, success = self._mean("extrinsic_return"), self.success
        better: np.ndarray = (now >= self.best_return) & np.isfinite(now)  # of equals, the newest
        self.best_return = np.where(better, now, self.best_return)
        self.best_success = np.where(better, success, self.best_success)
        self.best_frames = np.where(better, frames, self.best_frames)
        return better

    def keep(self, better: np.ndarray, policies: Mapping[str, np.ndarray]) -> None:
        """Keep the policies of the seeds that play as well as ever."""
        for name, array in policies.items():
            mask = better.reshape(-1, *[1] * (array.ndim - 1))
            self.best[name] = np.where(mask, array, self.best.get(name, array))
        self.is_new = True

    @property
    def success(self) -> np.ndarray:
        """Share of the recent episodes that succeeded: `[seeds]`."""
        return self._mean("success")

    @property
    def fallen(self) -> np.ndarray:
        """Which seeds have lost half of their best success: `[seeds]`."""
        return (self.success < FALLEN * self.best_success) & (self.best_success >= LEAST_SUCCESS)

    @property
    def ending(self) -> str:
        """Why the task ends now ('': it does not)."""
        rule = self.early_end
        if rule.success is not None and self._frames - self._begun >= rule.frames:
            success = self._mean("success", rule.frames).min()
            if success >= rule.success:
                return f"success {success:.2f} over the last {rule.frames:,} frames"
        without = self._frames - self._last_success
        if rule.without_success is not None and without >= rule.without_success:
            return f"no success in the last {without:,} frames"
        return ""

    def story(self) -> str:
        """Say how well the best policies played, and how well the last ones do ('': no record)."""
        if not self.best_frames.any():
            return ""
        lost = np.where(self.best_frames > 0, self.best_success - self.success, -np.inf)
        seed = int(np.argmax(lost))
        best, now = self.best_success[seed], self.success[seed]
        which = f" of seed index {seed}" if len(lost) > 1 else ""
        where = f"best success{which} {best:.2f} at {self.best_frames[seed]:,} frames"
        worse = f", and {now:.2f} at {self._frames:,}: `--checkpoint best` is the better one"
        return where + (worse if self.fallen[seed] else "")

    def _mean(self, name: str, frames: int = RECENT_FRAMES) -> np.ndarray:
        ended, total = np.zeros((2, len(self.best_return)))
        for one in reversed(self._chunks):
            if one.frames <= self._frames - frames and (ended >= self._actors).all():
                break
            ended, total = ended + one.episodes, total + getattr(one, name)
        mean: np.ndarray = np.where(ended > 0, total / np.maximum(ended, 1), -np.inf)
        return np.maximum(mean, 0) if name == "success" else mean

    def save(self, folder: Path) -> None:
        """Write the best policies, if there are new ones.

        They may be there already: a killed run may have saved them, but not its checkpoint.
        """
        if self.is_new:
            records = (RETURN, self.best_return), (FRAMES, self.best_frames)
            arrays = {**self.best, **dict(records), SUCCESS: self.best_success}
            checkpoint.save_new(folder, arrays, Position(0, int(self.best_frames.max())), kept=2)
        self.is_new = False

    def restore(
        self, folder: Path, metrics: Path, position: Position, chunk: int
    ) -> Loaded[Any] | None:
        """Read the best policies, and the rows of metrics until a checkpoint's position.

        Args:
            folder: of the best policies.
            metrics: the table.
            position: of the checkpoint.
            chunk: iterations in a chunk.

        Returns:
            The file of the best policies that was read (None: there is none).

        Raises:
            RunDirectoryError: a file is damaged.
        """
        columns = metrics_table.read(metrics)
        ended = any(column.values.any() for column in columns.get("episodes", {}).values())
        if ended and not {"success", "extrinsic_return"} <= columns.keys():
            return None  # a world lacks one of them: `add` counts nothing
        each = position.frames // position.iterations  # frames of an iteration
        first = min(columns.get("episodes", [0]))  # seed
        seeds = len(self.best_return)
        rows = {name: np.full((position.iterations, seeds), np.nan, np.float32) for name in READ}
        for name in READ:
            for seed, column in columns.get(name, {}).items():  # one may have ended no episode
                until = column.frames <= position.frames
                place = column.frames[until] // each - 1, seed - first
                rows[name][place] = column.values[until]
        for begin in range(0, position.iterations, chunk):
            end = begin + chunk
            self.add(end * each, {name: values[begin:end] for name, values in rows.items()})
        if found := checkpoint.newest_good(folder, checkpoint.read_arrays):
            arrays = found.state
            with reading(found.path):
                records = [arrays.pop(name).reshape(seeds) for name in (RETURN, SUCCESS, FRAMES)]
            self.best_return, self.best_success, self.best_frames = records
            self.best = arrays
        return found
