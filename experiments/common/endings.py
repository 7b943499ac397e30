"""End a run: draw its curves, film its policy, and name the next commands."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from cbet_jax.analysis import figures
from cbet_jax.own_code import is_own
from cbet_jax.runs import multihost
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.host_loop import Outcome
from cbet_jax.runs.signals import stop_on_signals
from cbet_jax.runs.tracking import Trackers
from envs.minigrid.generators.own_worlds import is_whole_world
from experiments.common import cli, invocation
from experiments.common.outputs import unused
from experiments.common.training_options import Experiment

WATCH = "experiments.watch"
SIMULATORS = ("--simulator", "--simulator-python")


def show_figures(
    directory: RunDirectory, trackers: Trackers | None, film: Callable[[Path], None] | None = None
) -> int:
    """Draw a run's curves, film its policy with `film`, and hand both to its trackers.

    Returns:
        The signal that asked to stop meanwhile, which skips the film (0: no signal).
    """
    pictures, stopped = draw_figures(directory)
    if film is not None and not stopped:
        films, stopped = draw_film(directory, film)
        pictures += films
    for picture in pictures:
        if trackers:
            trackers.show(picture.stem, picture)
    return stopped


def draw_figures(directory: RunDirectory) -> tuple[list[Path], int]:
    """Draw a run's learning curves on the first host, to the end even after one Ctrl-C.

    Returns:
        The first host's pictures, and the signal that asked any to stop meanwhile (0: no signal).
    """
    pictures: list[Path] = []

    def draw() -> None:
        actors = directory.settings().train.worlds
        pictures.extend(figures.draw_learning_curves(directory.metrics, directory.figures, actors))

    with stop_on_signals("drawing") as stop:
        multihost.on_first(draw)
    return pictures, multihost.largest(stop.signal)


def draw_film(directory: RunDirectory, film: Callable[[Path], None]) -> tuple[list[Path], int]:
    """Film the policy as `draw_figures` draws; return its films and the signal."""
    path = unused(directory.root / "watch.gif")

    def draw() -> None:
        with contextlib.suppress(SystemExit):  # the reason has been printed
            film(path)

    with stop_on_signals("the film") as stop:
        multihost.on_first(draw)
    return [path] if path.exists() else [], multihost.largest(stop.signal)


def closing_line(
    experiment: Experiment[Any], directory: RunDirectory, outcome: Outcome, words: Sequence[str]
) -> str:
    """Return how a run ended, and which commands to run next, given its command line's words."""
    story = f"{outcome.story}\n" if outcome.story else ""
    if outcome.finished or outcome.ending:
        how = "finished" if outcome.trained else "had already finished"
        following = "\nor: ".join(_next_commands(experiment, directory, words))
        why = f" ({outcome.ending})" if outcome.ending else ""
        return f"{story}{how} at {outcome.frames:,} frames{why}; next: {following}"
    if not outcome.signal:  # it has reached --until
        pairs = pairwise(["", *words])
        words = [w for before, w in pairs if "--until" not in (before, w.partition("=")[0])]
    again = how_to_continue(experiment, directory, words)
    stopped = "stopped and saved" if outcome.frames else "stopped"
    return f"{story}{stopped} at {outcome.frames:,} frames; {again}"


def _next_commands(
    experiment: Experiment[Any], directory: RunDirectory, words: Sequence[str]
) -> Iterator[str]:
    """Yield the commands that evaluate and show a run, naming own code and whole worlds again."""
    said, names = cli.said(words), directory.settings().environments
    whole = any(map(is_whole_world, names))  # the paper's ten are others
    worlds = said.get("--envs") or said.get("--env") or []
    if not any(map(is_own, worlds)):
        worlds = [*names] if whole else []
    of_all = ["--envs", *worlds] if worlds else []
    of_one = ["--env", worlds[0]] if worlds else []
    simulator = [word for name in SIMULATORS if name in said for word in (name, *said[name])]
    yield invocation.command_line(experiment.evaluate, directory.root, *of_all, *simulator)
    method = ["--method", *said["--method"]] if any(map(is_own, said.get("--method", []))) else []
    if not whole:  # they cannot be filmed
        yield invocation.command_line(WATCH, directory.root, *of_one, *method, *simulator)


def how_to_continue(
    experiment: Experiment[Any], directory: RunDirectory, words: Sequence[str]
) -> str:
    """Return the command that continues a stopped run: its own words and --resume."""
    said = cli.said(words)
    out = [] if "--out" in said else ["--out", directory.root]
    resume = [] if "--resume" in said else ["--resume"]
    return "continue with: " + invocation.command_line(experiment.module, *words, *out, *resume)
