"""Play episodes in gridworlds with the saved policies of runs, and with two random ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from rich.console import Console

from cbet_jax.config import RunSettings
from cbet_jax.evaluate import Episodes, Evaluator, evaluate_uniform, make_evaluator
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.saved_policies import UNIFORM, UNTRAINED, Policies, load_policies, untrained
from envs.minigrid import make_world
from envs.minigrid.generators.catalogue import TRANSFER
from experiments.common import training
from experiments.common.gridworlds import gridworld_settings
from experiments.evaluation import evaluation_table
from experiments.evaluation.evaluation_table import ALL_WORLDS, EvaluationRow


class EvaluatedRun(NamedTuple):
    """A run whose policies are evaluated."""

    directory: RunDirectory
    settings: RunSettings
    environments: tuple[str, ...]  # to play
    policies: Policies

    @property
    def name(self) -> str:
        """The name of its policies in the table."""
        settings = self.settings
        if settings.transfer:
            return settings.stage
        method = settings.train.method
        return method if settings.explore else f"{method} {settings.stage}"


def open_run(
    path: Path, environments: tuple[str, ...], checkpoint: int | None, console: Console
) -> EvaluatedRun:
    """Load a run's policies.

    Args:
        path: the run's directory.
        environments: to play (none: the ten of the paper's transfer, or the task that it learnt).
        checkpoint: frames of the checkpoint (None: the newest).
        console: where damaged checkpoints are reported.

    Raises:
        RunDirectoryError: there are no policies, or they cannot play in these environments.
    """
    directory = RunDirectory(path)
    settings = gridworld_settings(directory)
    environments = environments or (TRANSFER if settings.explore else settings.environments)
    world = make_world(environments[:1], 1, explore=False)
    policies = load_policies(directory, settings, world, checkpoint)
    training.tell_damaged(policies.loaded, console)
    return EvaluatedRun(directory, settings, environments, policies)


def play(
    runs: Sequence[EvaluatedRun], episodes: int, seed: int, console: Console
) -> list[list[EvaluationRow]]:
    """Play every policy in every world, all on the same levels.

    Args:
        runs: whose policies play.
        episodes: of each seed in each world.
        seed: of the levels and the actions.
        console: shows which world is being played.

    Returns:
        The rows of each run.
    """
    world_key, action_key = jax.random.split(jax.random.key(seed))
    played: list[dict[str, dict[str, Episodes]]] = [{} for _ in runs]
    names = list(dict.fromkeys(name for run in runs for name in run.environments))
    for number, name in enumerate(names, 1):
        world = make_world((name,), episodes, explore=False, levels_per_world=1)
        evaluators: dict[Any, Evaluator] = {}
        with console.status(f"playing {name} ({number} of {len(names)})"):
            uniform = jax.device_get(evaluate_uniform(world, world_key, action_key))
            for run, of_run in zip(runs, played, strict=True):
                if name not in run.environments:
                    continue
                # Programs differ only by their networks: compiled once, one plays for all runs.
                transfer = run.settings.transfer
                kind = run.settings.train.network, transfer and transfer.network
                if kind not in evaluators:
                    evaluators[kind] = make_evaluator(world, run.policies.agent)
                trained = evaluators[kind](run.policies.params, world_key, action_key)
                fresh = untrained(run.policies, run.settings)
                before = evaluators[kind](fresh, world_key, action_key)
                of_run[name] = {
                    run.name: jax.device_get(trained),
                    UNTRAINED: jax.device_get(before),
                    UNIFORM: jax.tree.map(lambda leaf: leaf[None], uniform),
                }
    return [_table(run, of_run, seed) for run, of_run in zip(runs, played, strict=True)]


def _table(
    run: EvaluatedRun, played: dict[str, dict[str, Episodes]], seed: int
) -> list[EvaluationRow]:
    """Return a run's rows: of each world, and of all together where there are several.

    Args:
        run: whose policies played.
        played: environment -> policy -> episodes `[seeds, episodes]`.
        seed: of the evaluation.
    """
    if len(played) > 1:
        played = {**played, ALL_WORLDS: _of_all_worlds(list(played.values()))}
    rows: list[EvaluationRow] = []
    for environment, policies in played.items():
        for name, episodes in policies.items():
            first_seed = seed if name == UNIFORM else run.settings.first_seed
            rows += evaluation_table.rows(name, first_seed, environment, episodes)
    return rows


def _of_all_worlds(worlds: Sequence[dict[str, Episodes]]) -> dict[str, Episodes]:
    """Return the episodes of each policy in all worlds, one after the other."""

    def join(*leaves: Any) -> Any:
        return jnp.concatenate(leaves, axis=1)

    return {name: jax.tree.map(join, *(world[name] for world in worlds)) for name in worlds[0]}
