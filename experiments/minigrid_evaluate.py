"""Evaluates policies: `python -m experiments.minigrid_evaluate DIR [DIR ...]`.

Plays episodes in each world (paper, section "offline transfer": actions sampled, success
ends the episode) with the saved policies of each run, with networks that have learnt nothing
("random" in the published evaluation), and with uniformly random actions.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import tyro
from rich.console import Console

from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.evaluate import Episodes, Evaluator, evaluate_uniform, make_evaluator
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.saved_policies import UNIFORM, UNTRAINED, Policies, load_policies, untrained
from envs.minigrid import make_world
from envs.minigrid.generators.catalogue import TRANSFER
from envs.registry import UnknownEnvironment, find
from experiments.common import cli, training
from experiments.evaluation import evaluation_table
from experiments.evaluation.evaluation_table import ALL, Row

PROGRAM = "experiments.minigrid_evaluate"


@dataclass(frozen=True)
class Options:
    """Plays episodes with the saved policies of runs, and with two random ones."""

    directories: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR ...")]
    episodes: int = 100  # of each seed in each world
    #: worlds (default: the ten of the paper's transfer; of a run that learnt a task, the one with
    #: that task)
    envs: tuple[str, ...] = ()
    seed: int = 0  # of the evaluation's levels and actions
    checkpoint: int | None = None  # frames of the checkpoint (default: the newest)


class Run(NamedTuple):
    """A run that is evaluated."""

    directory: RunDirectory
    settings: RunSettings
    environments: tuple[str, ...]  # to play
    policies: Policies

    @property
    def name(self) -> str:
        """What its policies are called in the table."""
        settings = self.settings
        if settings.transfer:
            return settings.stage
        method = settings.train.method
        return method if settings.explore else f"{method} {settings.stage}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the evaluation that the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Console()
    with cli.user_errors(UnknownEnvironment):
        options: Options = cli.parse(Options, arguments, module=PROGRAM)
        check(options)
        runs = [open_run(path, options, console) for path in options.directories]
        for run, rows in zip(runs, play(runs, options, console), strict=True):
            frames = run.policies.loaded.position.frames
            files = evaluation_table.write(run.directory.root, rows, frames, options.seed)
            evaluation_table.show(console, rows, f"{run.directory.root}, {frames:,} frames")
            saved = " and ".join(map(str, files))
            console.print(f"saved: {saved}", soft_wrap=True, highlight=False)


def check(options: Options) -> None:
    """Refuses what cannot be played.

    Raises:
        SettingsError: a number is out of range. UnknownEnvironment: no such world.
    """
    if not options.directories:
        raise SettingsError("give one or more runs: DIR ...")
    if options.episodes < 1:
        raise SettingsError(f"episodes must be at least 1, not {options.episodes}")
    if options.seed < 0:
        raise SettingsError(f"seed must be at least 0, not {options.seed}")
    for name in options.envs:
        find(name)


def open_run(path: Path, options: Options, console: Console) -> Run:
    """Reads a run's policies.

    Raises:
        RunDirectoryError: there are none, or they cannot play the worlds asked for.
    """
    directory = RunDirectory(path)
    settings = training.gridworld_settings(directory)
    environments = options.envs or (TRANSFER if settings.explore else settings.environments)
    world = make_world(environments[:1], 1, explore=False)
    policies = load_policies(directory, settings, world, options.checkpoint)
    training.tell_damaged(policies.loaded, console)
    return Run(directory, settings, environments, policies)


def play(runs: Sequence[Run], options: Options, console: Console) -> list[list[Row]]:
    """Plays every policy in every world, all on the same levels.

    Returns:
        The rows of each run.
    """
    world_key, action_key = jax.random.split(jax.random.key(options.seed))
    played: list[dict[str, dict[str, Episodes]]] = [{} for _ in runs]
    for name in dict.fromkeys(name for run in runs for name in run.environments):
        world = make_world((name,), options.episodes, explore=False, levels_per_world=1)
        evaluators: dict[Any, Evaluator] = {}
        with console.status(f"playing {name}"):
            uniform = jax.device_get(evaluate_uniform(world, world_key, action_key))
            for run, found in zip(runs, played, strict=True):
                if name not in run.environments:
                    continue
                # Programs differ by their networks alone: compiled once, they play for all runs.
                transfer = run.settings.transfer
                kind = run.settings.train.network, transfer and transfer.network
                if kind not in evaluators:
                    evaluators[kind] = make_evaluator(world, run.policies.agent)
                trained = evaluators[kind](run.policies.params, world_key, action_key)
                fresh = untrained(run.policies, run.settings)
                before = evaluators[kind](fresh, world_key, action_key)
                found[name] = {
                    run.name: jax.device_get(trained),
                    UNTRAINED: jax.device_get(before),
                    UNIFORM: jax.tree.map(lambda leaf: leaf[None], uniform),
                }
    return [table(run, found, options) for run, found in zip(runs, played, strict=True)]


def table(run: Run, played: dict[str, dict[str, Episodes]], options: Options) -> list[Row]:
    """Returns the rows of a run: of each world, and of all of them where there are several."""
    if len(played) > 1:
        names = next(iter(played.values()))
        together = lambda *leaves: jnp.concatenate(leaves, axis=1)  # noqa: E731
        worlds = list(played.values())
        played[ALL] = {n: jax.tree.map(together, *(world[n] for world in worlds)) for n in names}
    rows: list[Row] = []
    for environment, policies in played.items():
        for name, episodes in policies.items():
            first_seed = options.seed if name == UNIFORM else run.settings.first_seed
            rows += evaluation_table.rows(name, first_seed, environment, episodes)
    return rows


if __name__ == "__main__":
    main()
