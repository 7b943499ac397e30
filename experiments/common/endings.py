"""The end of a run: its curves are drawn, its policy is filmed, the next commands are printed."""

import atexit
import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

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

WATCH = "experiments.watch"  # another command to run next
STOPPED = 128  # exit status, plus the number of the signal
NOT_FINITE = 1  # exit status
SIMULATORS = ("--simulator", "--simulator-python")


def end_stopped(number: int) -> NoReturn:
    """End a command that a signal has stopped. A launcher may hand on its Ctrl-C only now.

    Raises:
        SystemExit: always.
    """
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    raise SystemExit(STOPPED + number)


def show_figures(
    directory: RunDirectory, trackers: Trackers | None, film: Callable[[Path], None] | None = None
) -> int:
    """Draw the learning curves of a run and film its policy, and give them to its trackers.

    Args:
        directory: of the run.
        trackers: of the run.
        film: films the policy, to a new GIF (None: no film).

    Returns:
        The signal that asked to stop meanwhile (0: no signal). Then there is no film.
    """
    pictures, stopped = draw_figures(directory)
    if film is not None and not stopped:
        pictures += draw_film(directory, film)
    for picture in pictures:
        if trackers:
            trackers.show(picture.stem, picture)
    return stopped


def draw_figures(directory: RunDirectory) -> tuple[list[Path], int]:
    """Draw the learning curves of a run, on the first host.

    A first Ctrl-C waits for the end of it: the run is finished and saved.

    Returns:
        The pictures there, and the signal that asked to stop meanwhile (0: no signal).
    """
    pictures: list[Path] = []

    def draw() -> None:
        actors = directory.settings().train.worlds
        pictures.extend(figures.draw_learning_curves(directory.metrics, directory.figures, actors))

    with stop_on_signals("drawing") as stop:
        multihost.on_first(draw)
    return pictures, stop.signal


def draw_film(directory: RunDirectory, film: Callable[[Path], None]) -> list[Path]:
    """Film the policy at play, on the first host, and return the film there.

    A first Ctrl-C waits for the end of it. Without a film the run is as finished as with one.
    """
    path = unused(directory.root / "watch.gif")

    def draw() -> None:
        with contextlib.suppress(SystemExit):  # the reason has been printed
            film(path)

    with stop_on_signals("the film"):
        multihost.on_first(draw)
    return [path] if path.exists() else []


def closing_line(
    experiment: Experiment[Any], directory: RunDirectory, outcome: Outcome, words: Sequence[str]
) -> str:
    """Return how a run ended, and which commands to run next.

    Args:
        experiment: names the commands.
        directory: of the run.
        outcome: how it ended.
        words: of the command line that trained it.
    """
    if outcome.finished:
        how = "finished" if outcome.trained else "had already finished"
        following = "\nor: ".join(_next_commands(experiment, directory, words))
        return f"{how} at {outcome.frames:,} frames; next: {following}"
    again = how_to_continue(experiment, directory, words)
    return f"stopped and saved at {outcome.frames:,} frames; {again}"


def _next_commands(
    experiment: Experiment[Any], directory: RunDirectory, words: Sequence[str]
) -> Iterator[str]:
    """Yield the commands that show what was learnt, naming the user's own code again."""
    said = cli.said(words)
    worlds = said.get("--envs") or said.get("--env") or []
    if not any(map(is_own, worlds)):
        worlds = []
    of_all = ["--envs", *worlds] if worlds else []
    of_one = ["--env", worlds[0]] if worlds else []
    simulator = [word for name in SIMULATORS if name in said for word in (name, *said[name])]
    yield invocation.command_line(experiment.evaluate, directory.root, *of_all, *simulator)
    if not any(map(is_whole_world, directory.settings().environments)):  # they cannot be filmed
        yield invocation.command_line(WATCH, directory.root, *of_one, *simulator)


def how_to_continue(
    experiment: Experiment[Any], directory: RunDirectory, words: Sequence[str]
) -> str:
    """Return the command that continues a stopped run: the one that began it, and --resume.

    Args:
        experiment: names the command.
        directory: of the run.
        words: of the command line that trained it.
    """
    said = cli.said(words)
    out = [] if "--out" in said else ["--out", directory.root]
    resume = [] if "--resume" in said else ["--resume"]
    return "continue with: " + invocation.command_line(experiment.module, *words, *out, *resume)
