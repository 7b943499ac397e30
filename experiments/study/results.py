"""A study's results as one long table, from which its whole report can be drawn again."""

import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cbet_jax.analysis.learning_curves import ALL_WORLDS as TOGETHER
from cbet_jax.analysis.learning_curves import by_metric, first_round, in_world, smoothed
from cbet_jax.runs import manifest, metrics_table
from cbet_jax.runs.atomic_write import give_name
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError, checkpoints
from cbet_jax.runs.metrics_table import Column
from cbet_jax.runs.reading import read_table, reading
from experiments.common.outputs import is_hidden, write_new, write_table
from experiments.evaluation.evaluation_table import ALL_SEEDS, ALL_WORLDS, UNIFORM, UNTRAINED
from experiments.study.contents import BEST_RETURN, SOLVABLE
from experiments.study.plan import (
    EVALUATION,
    PRETRAIN,
    PUBLISHED_FRAMES,
    TABULA_RASA,
    TRANSFER,
    StudySettings,
)

STUDY = "study"  # the stage of rows that say what was asked for
CURVES = ("interactions", "success", "extrinsic_return", "intrinsic_reward")
POINTS = 30  # a curve has so many
SMOOTHED_FRAMES = 300 * 3200  # window for 50 M frames (paper, appendix "plot smoothing")
SOLVED = 0.9  # share of the best return,
SUCCEEDS = 0.95  # or share of the episodes that can succeed,
SOLVING_FRAMES = 200_000  # as the mean of the episodes in so many last frames
MAY_DIFFER = ("budget", "seeds", "first_seed")  # between studies whose tables are read together
EXACT = 15  # digits of a setting
EARLIER = "results-earlier.csv"  # an earlier table, if it has results of which no files are left
ENDED_EARLY = "ended_early"  # metric: 1 after the frames at which a task was ended
ENDED = "diverged"  # metric: 1 after the frames of a diverged run's last checkpoint
FRAMES_TO_SOLVE = f"frames_to_return_{SOLVED}"
FRAMES_TO_SUCCEED = f"frames_to_success_{SUCCEEDS}"
# Metrics that a run may lose as it goes on.
PASSING = (ENDED, ENDED_EARLY, FRAMES_TO_SOLVE, FRAMES_TO_SUCCEED)


class Result(NamedTuple):
    """One number."""

    stage: str
    setup: str  # where pre-training was; empty without it
    method: str
    seed: int
    environment: str  # where it was measured
    metric: str
    frames: int  # trained for
    actors: int  # shared these frames; 0 where nothing was trained
    value: float


def write(path: Path, results: list[Result]) -> None:
    """Save the table atomically, settings and whole numbers with all of their digits."""

    def rounded(row: Result) -> str | float:
        exact = row.stage == STUDY or float(row.value).is_integer()
        return f"{row.value:.{EXACT}g}" if exact else float(row.value)

    write_table(path, Result._fields, ((*row[:-1], rounded(row)) for row in results), again=True)


def write_again(path: Path, results: list[Result]) -> Path | None:
    """Save the table in place of an earlier one, and keep that one if it has results without files.

    Runs may have been deleted since, of which it is all that is left.

    Returns:
        The earlier table, if it is kept.
    """
    kept = None
    if path.is_file() and not _has_all(results, path):
        kept = write_new(path.with_name(EARLIER), partial(give_name, path))
    write(path, results)
    return kept


def _has_all(results: Iterable[Result], path: Path) -> bool:
    """Return whether results have all that is in a table, maybe after other frames."""

    def measured(rows: Iterable[Result]) -> set[tuple[str | int, ...]]:
        return {
            (*row[:6], row.frames if row.stage == EVALUATION else 0)
            for row in rows
            if row.stage != STUDY and row.metric not in PASSING
        }

    try:
        return measured(read(path)) <= measured(results)
    except RunDirectoryError:
        return False


def read(path: Path) -> list[Result]:
    """Read the table back.

    Raises:
        RunDirectoryError: it is not there, or no such table.
    """
    with reading(path):
        header, rows = read_table(path)
        if header != Result._fields:
            raise ValueError("its columns are not " + ",".join(Result._fields))
        kinds = Result.__annotations__.values()
        return [Result(*(k(x) for k, x in zip(kinds, row.values(), strict=True))) for row in rows]


def read_together(paths: Iterable[Path]) -> list[Result]:
    """Read the tables of several studies as if they were one study's.

    What they have in common (the untrained) is there once. They may differ in budget and seeds; of
    these, the first table's settings are kept.

    Raises:
        RunDirectoryError: one cannot be read, or holds another value of an earlier one's number, or
            a run with another number of actors, or is of a study with other settings.
    """
    found: dict[Result, Result] = {}
    actors: dict[tuple[str, str, str], int] = {}
    preset = ""
    for path in paths:
        for row in read(Path(os.path.realpath(path))):  # the user may name a link
            run = f"{row.setup} {row.method}"
            there = actors.setdefault((row.stage, run, row.environment), row.actors)
            earlier = found.setdefault(row._replace(value=0.0), row).value
            said = ""
            preset = preset or (row.method if row.stage == STUDY else "")
            if row.stage == STUDY and row.method != preset:
                said = f"is of a study with the preset {row.method}, those before have {preset}"
            elif there != row.actors:
                said = f"has {row.actors} actors in {run}, those before have {there}"
            elif row.stage == STUDY and row.metric not in MAY_DIFFER and earlier != row.value:
                said = (
                    f"is of a study with {row.metric} {row.value:g}, those before have {earlier:g}"
                )
            elif row.actors and earlier != row.value:
                what = f"{run}, seed {row.seed}, {row.metric}"
                said = f"holds another value of {what} than those before"
            if said:
                raise RunDirectoryError(f"{path} {said}: report them apart")
    return list(found.values())


def collect(root: Path, study: StudySettings) -> list[Result]:
    """Return all finished results in a study's directory, whatever was asked for this time.

    Raises:
        RunDirectoryError: a run or a table cannot be read.
    """
    weight = study.tasks_entropy_weight
    asked = {
        "budget": study.budget,
        "seeds": study.seeds,
        "episodes": study.episodes,
        "first_seed": study.first_seed,
        "actors": study.actors or 0,  # 0: the preset's
        "bfloat16": study.factors == "bfloat16",
        "tasks_entropy_weight": -1.0 if weight is None else weight,  # -1: the preset's
        "tasks_as_published": study.tasks_as_published,
    }
    found = [Result(STUDY, "", study.preset, 0, "", k, 0, 0, v) for k, v in asked.items()]
    for path in sorted(root.glob(f"{PRETRAIN}/*/*/")):
        found += _run(PRETRAIN, path.parent.name, path.name, path, study)
    for path in sorted(root.glob(f"{TRANSFER}/*/*/")):
        setup, _, method = path.name.partition("-")
        found += _run(TRANSFER, setup, method, path, study)
    for path in sorted(root.glob(f"{TABULA_RASA}/*/*/")):
        found += _run(TABULA_RASA, "", path.name, path, study)
    tables = sorted(path for path in root.glob(f"{EVALUATION}/*/*/*/*.csv") if not is_hidden(path))
    evaluated = [row for path in tables for row in _evaluation(root, path)]
    return found + list(dict.fromkeys(evaluated))  # the untrained are the same in all tables


def frames_to_reach(enough: float, column: Column, window: int, actors: int) -> int | None:
    """Return the frames until the smoothed metric was enough, None if it never was.

    The window must be full, and begin after `first_round`.
    """
    frames = column.frames[column.frames >= window + first_round(column, actors)]
    solved = smoothed(column, window, frames) >= enough
    return int(frames[np.argmax(solved)]) if solved.any() else None


def _run(stage: str, setup: str, method: str, path: Path, study: StudySettings) -> Iterator[Result]:
    """Return a run's curves as far as it is, whether it diverged, and when it solved its task."""
    directory = RunDirectory(path)
    if not directory.config.exists():
        return
    settings = directory.settings()
    actors, now = settings.train.worlds, directory.saved_frames()
    window = max(1, SMOOTHED_FRAMES * study.budget // PUBLISHED_FRAMES)
    grid = np.arange(1, POINTS + 1) * now // POINTS
    world = ALL_WORLDS if settings.explore else settings.environments[0]
    goals = {
        "extrinsic_return": (FRAMES_TO_SOLVE, SOLVED * BEST_RETURN.get(world, 1.0)),
        "success": (FRAMES_TO_SUCCEED, SUCCEEDS * SOLVABLE.get(world, 1.0)),
    }
    if manifest.diverged(directory.manifest):
        yield Result(stage, setup, method, 0, world, ENDED, now, actors, 1.0)
    if manifest.ending(directory.manifest):
        for seed in range(settings.first_seed, settings.first_seed + settings.seeds):
            yield Result(stage, setup, method, seed, world, ENDED_EARLY, now, actors, 1.0)
    if not checkpoints(directory.checkpoints) or not now:
        return  # nor need it have a table of metrics: a run of transfer is saved before it begins
    metrics = by_metric(metrics_table.read_verified(directory))
    for metric in CURVES:
        lines = metrics.get(metric, {})
        for seed, column in lines.get(TOGETHER, {}).items():
            here = Result(stage, setup, method, seed, world, metric, 0, actors, 0)
            values = in_world(lines, TOGETHER, seed, window, grid)
            first = first_round(column, actors)
            for frames, value in zip(grid, values, strict=True):
                if frames >= first and not np.isnan(value):
                    yield here._replace(frames=int(frames), value=float(value))
            if settings.explore or metric not in goals:
                continue
            name, enough = goals[metric]
            solved = frames_to_reach(enough, column, min(window, SOLVING_FRAMES), actors)
            if solved and solved <= now:
                yield here._replace(metric=name, frames=now, value=solved)


def _evaluation(root: Path, path: Path) -> Iterator[Result]:
    """Return what one table says of each seed in each world."""
    setup, method, frames = path.parts[-4:-1]
    run = RunDirectory(root / PRETRAIN / setup / method)
    if not run.config.exists():
        return  # it was deleted since
    actors = run.settings().train.worlds
    random = Result(EVALUATION, "", "", 0, "", "", 0, 0, 0)
    numbers = ("success_rate", "unique_interactions", "episode_length")
    with reading(path):
        trained = Result(EVALUATION, setup, method, 0, "", "", int(frames), actors, 0)
        for row in read_table(path)[1]:
            if row["seed"] == ALL_SEEDS or row["environment"] == ALL_WORLDS:
                continue
            known = row["method"] in (UNTRAINED, UNIFORM)
            here = random._replace(method=row["method"]) if known else trained
            here = here._replace(seed=int(row["seed"]), environment=row["environment"])
            shares = [name for name in row if name.startswith("share_of_")]
            for metric in (*numbers, *shares):
                yield here._replace(metric=metric, value=float(row[metric]))
