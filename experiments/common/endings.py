"""What is drawn, filmed and said when a run ends."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cbet_jax.analysis import figures
from cbet_jax.runs import multihost
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.signals import stop_on_signals
from cbet_jax.runs.tracking import Trackers
from cbet_jax.runs.train_loop import Outcome
from experiments.common import invocation
from experiments.common.experiment import Experiment
from experiments.common.outputs import unused

WATCH = "experiments.watch"  # another command to run next
STOPPED = 128  # exit status, plus the number of the signal
NOT_FINITE = 1  # exit status


def show_figures(
    directory: RunDirectory, trackers: Trackers | None, film: tuple[str, ...] | None = None
) -> None:
    """Draw the learning curves of a run and film its policy, and give them to its trackers.

    Args:
        directory: of the run.
        trackers: of the run.
        film: words of `watch` (None: no film).
    """
    pictures = draw_figures(directory)
    if film is not None:
        pictures += draw_film(directory, film)
    for picture in pictures:
        if trackers:
            trackers.show(picture.stem, picture)


def draw_figures(directory: RunDirectory) -> list[Path]:
    """Draw the learning curves of a run, on the first host, and return the pictures there.

    A first Ctrl-C waits for the end of it: the run is finished and saved.
    """
    pictures: list[Path] = []

    def draw() -> None:
        pictures.extend(figures.draw_learning_curves(directory.metrics, directory.figures))

    with stop_on_signals("drawing"):
        multihost.on_first(draw)
    return pictures


def draw_film(directory: RunDirectory, words: Sequence[str]) -> list[Path]:
    """Film the policy at play, on the first host, and return the film there.

    A first Ctrl-C waits for the end of it. Without a film the run is as finished as with one.
    """
    from experiments import watch  # imported here: it imports this module

    path = unused(directory.root / "watch.gif")

    def draw() -> None:
        with contextlib.suppress(SystemExit):  # the reason has been printed
            watch.main([str(directory.root), "--out", str(path), *words])

    with stop_on_signals("the film"):
        multihost.on_first(draw)
    return [path] if path.exists() else []


def closing_line(experiment: Experiment[Any], directory: RunDirectory, outcome: Outcome) -> str:
    """Return how a run ended, and which commands to run next."""
    if outcome.finished:
        how = "finished" if outcome.trained else "had already finished"
        evaluate = invocation.command_line(experiment.evaluate, directory.root)
        watch = invocation.command_line(WATCH, directory.root)
        return f"{how} at {outcome.frames:,} frames; next: {evaluate}\nor: {watch}"
    again = how_to_continue(experiment, directory)
    return f"stopped and saved at {outcome.frames:,} frames; {again}"


def how_to_continue(experiment: Experiment[Any], directory: RunDirectory) -> str:
    """Return what continues a run that was stopped."""
    again = invocation.command_line(experiment.module, "--out", directory.root, "--resume")
    return f"continue with: {again}"
