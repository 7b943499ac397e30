"""How tasks were learnt, with pre-training and without (Figure 8 of the paper)."""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from cbet_jax.analysis import intervals
from cbet_jax.analysis.method_style import title
from experiments.study.contents import printed_scale
from experiments.study.estimates import RETURN, SUCCESS, Findings, within
from experiments.study.plan import TABULA_RASA, TRANSFER
from experiments.study.results import FRAMES_TO_SOLVE, SOLVED
from experiments.study.tables import NOT_PRINTED, NOTHING, Lines, interval, markdown


class TaskRun(NamedTuple):
    """A task that was learnt, in one way, by all seeds."""

    task: str
    how: str  # with or without pre-training
    method: str
    frames: int  # that were played
    returns: dict[int, float]  # seed -> last return
    success: dict[int, float]  # seed -> share of the last episodes
    solved: dict[int, float]  # seed -> frames to a return of `SOLVED`, of those that got there


def task_runs(found: Findings) -> Iterator[TaskRun]:
    """Yield how each task was learnt, with pre-training and without."""
    for task in found.tasks():
        for stage in (TRANSFER, TABULA_RASA):
            for setup, method in product(found.names(stage, 1), found.names(stage, 2)):
                run = stage, setup, method, task
                curve = found.curve((*run, RETURN))
                if curve is None:
                    continue
                how = f"transfer from {setup}" if setup else "tabula rasa"
                last = (found.last((*run, what)) for what in (RETURN, "success", FRAMES_TO_SOLVE))
                yield TaskRun(task, how, title(method), int(curve.frames[-1]), *last)


def table(found: Findings) -> Lines:
    """Return how tasks were learnt."""
    rows = []
    for run in task_runs(found):
        frames = (
            f"{run.solved[seed]:,.0f}" if seed in run.solved else "never"
            for seed in sorted(run.returns)
        )
        ends = _end(RETURN, run.returns), _end(SUCCESS, run.success)
        what = run.task, run.how, run.method, f"{run.frames:,}"
        rows.append([*what, *ends, ", ".join(frames), NOT_PRINTED])
    if not rows:
        return NOTHING
    reached = f"frames to {SOLVED}: each seed"
    header = ["task", "", "method", "frames", "last return", "last success (%)", reached]
    return markdown([*header, "published"], rows)


def _end(metric: str, last: dict[int, float]) -> str:
    if not last:
        return ""
    mean = within(metric, intervals.mean(np.array(list(last.values()))))
    scale = printed_scale(metric)
    return f"{scale * mean.value:.2f} {interval(mean, len(last), scale)}"
