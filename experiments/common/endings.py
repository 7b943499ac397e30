"""What is drawn, filmed and said when a run ends."""

import atexit
import contextlib
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cbet_jax.analysis import figures
from cbet_jax.runs import multihost
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.host_loop import Outcome
from cbet_jax.runs.signals import stop_on_signals
from cbet_jax.runs.tracking import Trackers
from envs.minigrid.generators.own_worlds import is_whole_world
from experiments import watch
from experiments.common import cli, invocation
from experiments.common.experiment import Experiment
from experiments.common.outputs import unused

WATCH = "experiments.watch"  # another command to run next
STOPPED = 128  # exit status, plus the number of the signal
NOT_FINITE = 1  # exit status
SIMULATORS = ("--simulator", "--simulator-python")
NAMING_CODE = (*cli.OWN_CODE, *SIMULATORS)  # options whose values may be code
#: options that a run does not store, because they change no number of it or only the order of sums
NOT_STORED = (
    *("--checkpoint-seconds", "--keep-at", "--track", "--film", "--no-film"),
    *("--devices", "--distributed", "--no-distributed"),
)


def end_stopped(number: int) -> NoReturn:
    """End a command that a signal has stopped. A launcher may hand on its Ctrl-C only now.

    Raises:
        SystemExit: always.
    """
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    raise SystemExit(STOPPED + number)


def show_figures(
    directory: RunDirectory, trackers: Trackers | None, film: tuple[str, ...] | None = None
) -> int:
    """Draw the learning curves of a run and film its policy, and give them to its trackers.

    Args:
        directory: of the run.
        trackers: of the run.
        film: words of `watch` (None: no film).

    Returns:
        The signal that asked to stop meanwhile (0: none). Then there is no film.
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
        The pictures there, and the signal that asked to stop meanwhile (0: none).
    """
    pictures: list[Path] = []

    def draw() -> None:
        actors = directory.settings().train.worlds
        pictures.extend(figures.draw_learning_curves(directory.metrics, directory.figures, actors))

    with stop_on_signals("drawing") as stop:
        multihost.on_first(draw)
    return pictures, stop.signal


def draw_film(directory: RunDirectory, words: Sequence[str]) -> list[Path]:
    """Film the policy at play, on the first host, and return the film there.

    A first Ctrl-C waits for the end of it. Without a film the run is as finished as with one.
    """
    path = unused(directory.root / "watch.gif")

    def draw() -> None:
        with contextlib.suppress(SystemExit):  # the reason has been printed
            watch.main([str(directory.root), "--out", str(path), *words])

    with stop_on_signals("the film"):
        multihost.on_first(draw)
    return [path] if path.exists() else []


def closing_line(
    experiment: Experiment[Any],
    directory: RunDirectory,
    outcome: Outcome,
    words: Sequence[str] = (),
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
    """Yield the commands that show what was learnt, naming the code of the user's own again."""
    own = _own_code(words)
    worlds = own.get("--envs") or own.get("--env") or []
    of_all = ("--envs", *worlds) if worlds else ()
    of_one = ("--env", worlds[0]) if worlds else ()
    simulator = [word for name in SIMULATORS if name in own for word in (name, *own[name])]
    yield invocation.command_line(experiment.evaluate, directory.root, *of_all, *simulator)
    if not any(map(is_whole_world, directory.settings().environments)):  # there is no film of those
        yield invocation.command_line(WATCH, directory.root, *of_one, *simulator)


def how_to_continue(
    experiment: Experiment[Any], directory: RunDirectory, words: Sequence[str]
) -> str:
    """Return what continues a run that was stopped.

    Args:
        experiment: names the command.
        directory: of the run.
        words: of the command line that trained it.
    """
    again = ("--out", directory.root, "--resume", *repeated(words))
    return f"continue with: {invocation.command_line(experiment.module, *again)}"


def repeated(words: Sequence[str]) -> list[str]:
    """Return those options of a command line that a run does not know when it is resumed.

    They name code of the user's own, which a run never loads by itself, or are not stored.
    """
    own = _own_code(words)
    kept = {
        name: values
        for name, values in _options(words).items()
        if name in own or name in NOT_STORED
    }
    return [word for name, values in kept.items() for word in (name, *values)]


def _own_code(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of those options that name code of the user's own, by name."""
    return {
        name: values
        for name, values in _options(words).items()
        if name in NAMING_CODE
        and (name == "--simulator-python" or any(":" in x or x.endswith(".py") for x in values))
    }


def _options(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of all options of a command line, by name."""
    options: dict[str, list[str]] = {}
    values: list[str] = []
    for word in words:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            values = [value] if equals else []
            options[name.replace("_", "-")] = values
        else:
            values.append(word)
    return options
