"""Evaluate policies: `python -m experiments.minigrid_evaluate DIR [DIR ...]`.

Plays episodes in each world (paper, section 4.1, "evaluation metrics"; as in the published code,
actions are sampled, and success ends the episode) with the saved policies of each run, with
networks that have learnt nothing (its "random"), and with uniformly random actions.
"""

import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cbet_jax.config import SettingsError
from cbet_jax.runs.directory import Checkpoint
from cbet_jax.runs.signals import stop_on_signals
from cbet_jax.settings.ranges import Episodes, Seed, check_fields
from envs.errors import UnknownEnvironment
from experiments.common import cli
from experiments.common.commands import AND
from experiments.common.interrupts import end_if_stopped
from experiments.common.outputs import distinct_names, given_run, results_folder
from experiments.common.screen import Screen, say

MODULE = "experiments.minigrid_evaluate"


@dataclass(frozen=True)
class EvaluateOptions:
    """Play episodes with the saved policies of runs, and with two random ones."""

    directories: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR ...")]
    episodes: Episodes = 100  # episodes of each seed in each world
    #: worlds to play (none: the ten of the paper's transfer; for a run that learnt a task, the
    #: world of that task)
    envs: tuple[str, ...] = ()
    seed: Seed = 0  # of the evaluation's levels and actions
    #: frames of the checkpoint, best or newest (None: a task's best, else newest)
    checkpoint: Checkpoint = None
    #: folder of the table and its picture; of several runs each gets its own in it (None: the
    #: run's directory)
    out: Path | None = None


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the evaluation that the command line asks for, or several with `AND` between them."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors(UnknownEnvironment):
        parts = itertools.groupby(arguments, lambda word: word == AND)
        asked = [_read(tuple(words)) for is_joint, words in parts if not is_joint]
        options, *others = asked or [_read(())]
        for other in others:
            if (other.episodes, other.seed) != (options.episodes, options.seed):
                raise SettingsError(f"{AND} joins evaluations with equal --episodes and --seed")
        # Imported here: they take seconds.
        from cbet_jax.runs.saved_policies import frames_of_seeds
        from experiments.evaluation import evaluation_table, gridworlds

        runs, folders = [], []
        for one in (options, *others):
            paths = [given_run(path) for path in one.directories]
            for path, out in zip(paths, outs_of(paths, one.out), strict=True):
                runs.append(gridworlds.open_run(path, one.envs, one.checkpoint, console))
                folders.append(results_folder(out, path))
        tables = gridworlds.play(runs, options.episodes, options.seed, console)
        with stop_on_signals("the last picture") as stop:  # a table has its picture
            for run, folder, rows in zip(runs, folders, tables, strict=True):
                done = frames_of_seeds(run.policies.loaded, run.settings.seeds)
                frames = {str(run.settings.first_seed + i): each for i, each in enumerate(done)}
                title = f"{run.directory.root}, {evaluation_table.span(done)} frames"
                evaluation_table.show(console, rows, title)
                files = evaluation_table.write(folder, rows, frames, options.seed)
                say(console, f"saved: {' and '.join(map(str, files))}")
        end_if_stopped(stop.signal)


def _read(arguments: Sequence[str]) -> EvaluateOptions:
    options: EvaluateOptions = cli.parse(EvaluateOptions, arguments, MODULE)
    check(options)
    return options


def outs_of(paths: Sequence[Path], out: Path | None) -> list[Path | None]:
    """Return the folder of each run's table (None: the run's own directory)."""
    names = distinct_names(paths)
    if out is None or len(paths) == 1:
        return [out] * len(paths)
    return [out / name for name in names]


def check(options: EvaluateOptions) -> None:
    """Refuse missing runs, numbers out of range and unknown worlds."""
    if not options.directories:
        raise SettingsError("give one or more runs: DIR ...")
    check_fields(options)
    # Imported here: they take seconds.
    from envs.minigrid.generators import find
    from envs.minigrid.generators.own_worlds import is_whole_world

    for name in options.envs:
        if not is_whole_world(name):
            find(name)


if __name__ == "__main__":
    main()
