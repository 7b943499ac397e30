"""Evaluates a pre-trained policy: `python -m experiments.minigrid_evaluate DIR`.

Plays episodes in each world (paper, section "offline transfer": actions sampled, success
ends the episode) with the saved policy, with the network as it was before training
("random" in the published evaluation), and with uniformly random actions.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import tyro
from rich.console import Console

from cbet_jax import checkpoint
from cbet_jax.config import SettingsError
from cbet_jax.evaluate import evaluate, evaluate_uniform
from cbet_jax.networks import PolicyNetwork, init_params
from cbet_jax.run_directory import RunDirectory, RunDirectoryError, RunSettings, to_json
from cbet_jax.train import make_program, seed_keys
from envs.minigrid import make_world
from envs.registry import UnknownEnvironment, find
from envs.types import World
from experiments import cli, evaluation_table
from experiments.evaluation_table import Row

PROGRAM = "python -m experiments.minigrid_evaluate"
UNTRAINED = "untrained"  # the network before training
UNIFORM = "uniform"  # every action with the same chance


@dataclass(frozen=True)
class Options:
    """Plays episodes with the saved policy of a run, and with two random ones."""

    directory: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")]  # of the run
    episodes: int = 100  # of each seed in each world
    envs: tuple[str, ...] = ()  # worlds (default: those of the run)
    seed: int = 0  # of the evaluation's levels and actions
    checkpoint: int | None = None  # frames of the checkpoint (default: the newest)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the evaluation that the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Console()
    with cli.user_errors(UnknownEnvironment):
        options: Options = cli.parse(Options, arguments, prog=PROGRAM)
        directory = RunDirectory(options.directory)
        settings = directory.settings()
        environments = check(options, settings)
        world = make_world(settings.environments, settings.train.worlds, explore=True)
        loaded = load(directory, settings, world, options, console)
        untrained = fresh_params(settings, world)
        rows = play(settings, loaded.state.params, untrained, environments, options, console)
        files = evaluation_table.write(directory.root, rows, loaded.position.frames, options.seed)
    evaluation_table.show(console, rows, f"{loaded.position.frames:,} frames")
    console.print(f"saved: {' and '.join(map(str, files))}", soft_wrap=True, highlight=False)


def check(options: Options, settings: RunSettings) -> tuple[str, ...]:
    """Returns the worlds to play.

    Raises:
        SettingsError: a number is out of range. UnknownEnvironment: no such world.
    """
    if options.episodes < 1:
        raise SettingsError(f"episodes must be at least 1, not {options.episodes}")
    if options.seed < 0:
        raise SettingsError(f"seed must be at least 0, not {options.seed}")
    environments = options.envs or settings.environments
    for name in environments:
        find(name)
    return environments


def load(
    directory: RunDirectory,
    settings: RunSettings,
    world: World,
    options: Options,
    console: Console,
) -> checkpoint.Loaded:
    """Reads the checkpoint to evaluate.

    Raises:
        RunDirectoryError: there is no good one.
    """
    program = make_program(settings.train, world, settings.seeds, settings.chunk)
    template = jax.eval_shape(program.init, seed_keys(settings.seeds, settings.first_seed))
    folder, saved_with = directory.checkpoints, to_json(settings)
    if options.checkpoint is not None:
        return checkpoint.load_at(folder, options.checkpoint, template, saved_with)
    loaded = checkpoint.load_newest(folder, template, saved_with)
    if loaded is None:
        raise RunDirectoryError(f"{directory.root} holds no checkpoint yet")
    for path in loaded.damaged:
        console.print(f"checkpoint {path} is damaged: using {loaded.path.name}", soft_wrap=True)
    return loaded


def play(
    settings: RunSettings,
    params: Any,
    untrained: Any,
    environments: Sequence[str],
    options: Options,
    console: Console,
) -> list[Row]:
    """Plays every policy in every world, all on the same levels."""
    world_key, action_key = jax.random.split(jax.random.key(options.seed))
    seeds, first_seed = settings.seeds, settings.first_seed
    both = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), params, untrained)
    rows: list[Row] = []
    for name in environments:
        world = make_world((name,), options.episodes, explore=False, levels_per_world=1)
        with console.status(f"playing {name}"):
            played = evaluate(world, settings.train.network, both, world_key, action_key)
            uniform = evaluate_uniform(world, world_key, action_key)
        trained = jax.tree.map(lambda leaf: leaf[:seeds], played)
        random = jax.tree.map(lambda leaf: leaf[seeds:], played)
        rows += evaluation_table.rows(settings.train.method, first_seed, name, trained)
        rows += evaluation_table.rows(UNTRAINED, first_seed, name, random)
        rows += evaluation_table.rows(
            UNIFORM, options.seed, name, jax.tree.map(lambda leaf: leaf[None], uniform)
        )
    return rows


def fresh_params(settings: RunSettings, world: World) -> Any:
    """Returns one untrained network for each seed, with a leading axis of seeds."""
    network = PolicyNetwork(settings.train.network, world.num_actions)
    keys = seed_keys(settings.seeds, settings.first_seed)
    return jax.vmap(lambda key: init_params(network, key, world.view_shape))(keys)


if __name__ == "__main__":
    main()
