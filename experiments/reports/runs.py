"""Read runs for `report` and `compare`: settings, curves, and results at the end."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cbet_jax.analysis.learning_curves import (
    ALL_WORLDS,
    LAST,
    Curve,
    Lines,
    at_the_end,
    by_metric,
    over_seeds,
)
from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.runs import manifest, metrics, metrics_table
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError, holds_no
from cbet_jax.settings.as_json import flattened, to_json
from experiments.common.outputs import distinct_names, given_run
from experiments.common.screen import printable
from experiments.reports.comparison import Row

#: settings that change the reward before its weight, `train.intrinsic_coefficient`
REWARD_SETTINGS = (
    *("train.method", "train.own", "train.counts.", "train.auxiliary."),
    "train.loss.intrinsic_discount",  # of `rnd-normalized`'s scale
)
MOST_SPEED = 10**15  # frames a second that a manifest may say
ONE_SEED_EACH = "One seed each: the runs differ by chance, too; --seeds 3 tells how much."
NO_ROW = (
    "A run without a row does not play the world, lacks the metric, or had too few episodes yet."
)
OTHER_SCALE = "Intrinsic rewards of other methods or settings have another scale: not compared."


class Run(NamedTuple):
    """A run as stored on disk."""

    name: str
    directory: RunDirectory
    settings: RunSettings
    metrics: dict[str, Lines]  # metric -> world -> seed -> column
    sessions: list[dict[str, Any]]  # from its manifest

    @property
    def frames(self) -> int:
        """The last frame in the table of metrics."""
        columns = (c for lines in self.metrics.values() for s in lines.values() for c in s.values())
        return max(int(column.frames[-1]) for column in columns)


def read(words: Sequence[str]) -> list[Run]:
    """Read the runs that words name, as `RUN` or `NAME=RUN`.

    Raises:
        SettingsError: two runs have the same name, or a word lacks one.
        RunDirectoryError: a directory holds no run, or is damaged.
    """
    split = [_name_and_path(word) for word in words]
    names = distinct_names([path for _, path in split])
    names = [printable(given) or name for (given, _), name in zip(split, names, strict=True)]
    for name in names:
        if names.count(name) > 1:
            raise SettingsError(f"two runs are called {name!r}: say NAME=RUN")
    return [_read(name, path) for name, (_, path) in zip(names, split, strict=True)]


def _name_and_path(word: str) -> tuple[str, Path]:
    """Split NAME=RUN at the `=` before a folder, or at the last; both may contain `=`."""
    if Path(word).is_dir() or "=" not in word:
        return "", given_run(Path(word))
    places = [place for place, letter in enumerate(word) if letter == "="]
    folders = [place for place in places if Path(word[place + 1 :]).is_dir()]
    place = folders[0] if folders else places[-1]
    if not place or place == len(word) - 1:
        raise SettingsError(f"{word!r} lacks a name or a run: say NAME=RUN")
    return word[:place], given_run(Path(word[place + 1 :]))


def _read(name: str, path: Path) -> Run:
    directory = RunDirectory(path)
    settings = directory.settings()
    if not os.path.lexists(directory.metrics):
        raise holds_no("metrics yet", directory.metrics)
    table = metrics_table.read_verified(directory)
    if not table:
        played = "has no learning curves" if directory.saved_frames() else "has played nothing yet"
        raise RunDirectoryError(f"{path} {played}")
    sessions = manifest.sessions(directory.manifest)
    found = by_metric(table, settings.train.worlds)
    if settings.train.method == "none":
        found.pop(metrics.INTRINSIC, None)
    return Run(name, directory, settings, found, sessions)


def speed_of(session: Mapping[str, Any]) -> float:
    """Return the frames a second that a session of a manifest says; 0 where that is no speed."""
    speed = session.get("frames_per_second")
    if isinstance(speed, bool) or not isinstance(speed, int | float):
        return 0.0
    return float(speed) if 0 < speed < MOST_SPEED else 0.0


def last_frames(runs: Sequence[Run], until: int | None = None) -> int:
    """Return the frames up to which runs are compared: those that every run has played.

    Args:
        runs: the runs.
        until: the frames asked for (None: as many as possible).

    Raises:
        SettingsError: a run has played fewer than `until`.
    """
    shortest = min(runs, key=lambda run: run.frames)
    if until is not None and not 1 <= until <= shortest.frames:
        most = f"1..{shortest.frames}, the frames of {shortest.name!r}"
        raise SettingsError(f"until must be in {most}, not {until}")
    return until or shortest.frames


def differing(runs: Sequence[Run], *others: RunSettings) -> dict[str, list[str]]:
    """Return the settings in which runs and others differ: name -> values."""
    flat = [flattened(to_json(each)) for each in (*(run.settings for run in runs), *others)]
    names = dict.fromkeys(name for each in flat for name in each)
    values = {name: [str(each.get(name, "")) for each in flat] for name in names}
    return {name: each for name, each in values.items() if len(set(each)) > 1}


def curves(runs: Sequence[Run], until: int | None = None) -> dict[str, dict[str, Curve]]:
    """Return each main metric's curves: one for each run, or for each world of one run."""
    found: dict[str, dict[str, Curve]] = {}
    for metric in metrics.MAIN:
        for run in runs:
            lines = run.metrics.get(metric, {})
            for world in lines if len(runs) == 1 else lines.keys() & {ALL_WORLDS}:
                name = world if len(runs) == 1 else run.name
                curve = over_seeds(lines, world, until)
                if len(curve.frames):
                    found.setdefault(metric, {})[name] = curve
    return found


def ends(runs: Sequence[Run], until: int) -> list[Row]:
    """Return each metric over the last tenth of frames, in all worlds and in each world."""
    rows = []
    for metric in metrics.MAIN:
        of_runs = [run.metrics.get(metric, {}) for run in runs]
        worlds = dict.fromkeys(world for lines in of_runs for world in sorted(lines))
        for world in sorted(worlds, key=lambda world: world != ALL_WORLDS):
            for run, lines in zip(runs, of_runs, strict=True):
                values = {
                    seed: at_the_end(lines, world, seed, until)
                    for seed in sorted(lines.get(world, {}))
                }
                values = {seed: value for seed, value in values.items() if not np.isnan(value)}
                if values:
                    rows.append(Row(run.name, metric, world, values))
    if not rows:
        raise SettingsError(f"no run has metrics before {until:,} frames: --until must be larger")
    return rows


def compared(
    runs: Sequence[Run], rows: Sequence[Row], until: int
) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return the runs' `ends` and their differences from the first run, as text.

    Returns:
        Rows of metric, world, run, mean and difference; and sentences that explain them.
    """
    same_reward = not any(name.startswith(REWARD_SETTINGS) for name in differing(runs))
    firsts: dict[tuple[str, str], Row] = {}
    lines: list[tuple[str, ...]] = []
    for row in rows:
        apart = ""
        if row.name == runs[0].name:
            firsts[row.metric, row.world] = row
        elif row.metric == metrics.INTRINSIC and not same_reward:
            apart = "another scale"
        elif first := firsts.get((row.metric, row.world)):
            apart = row.difference_text(first, 3)
        lines.append((metrics.of(row.metric).title, row.world, row.name, row.text(3), apart))
    where = f"the {-(-until // LAST):,} frames before {until:,}"
    last = "all worlds: a world where no episode ended there counts with its last mean"
    said = [f"Means over {where} ({last}), with 95 % intervals."]
    if all(len(row.values) == 1 for row in rows):
        said.append(ONE_SEED_EACH)
    if not same_reward:
        said.append(OTHER_SCALE)
    if len(runs) * len({row[1:3] for row in rows}) > len(rows):
        said.append(NO_ROW)
    troubles = {run.name: manifest.diverged(run.directory.manifest) for run in runs}
    return lines, said + [f"{name} diverged: {how}." for name, how in troubles.items() if how]
