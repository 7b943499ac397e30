"""Play episodes in gridworlds with the saved policies of runs, and with two random ones."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PRNGKeyArray
from rich.console import Console

from cbet_jax.agent import uniform
from cbet_jax.config import RunSettings
from cbet_jax.evaluate import NOTHING_LEARNT, Episodes, Evaluator, make_evaluator
from cbet_jax.runs import devices
from cbet_jax.runs.directory import Checkpoint, RunDirectory, RunDirectoryError
from cbet_jax.runs.saved_policies import (
    Initializer,
    Policies,
    load_policies,
    make_initializer,
    untrained,
)
from cbet_jax.runs.signals import interruptible
from envs.minigrid import make_world
from envs.minigrid.generators import TRANSFER, Generator, find
from envs.minigrid.generators.own_worlds import is_whole_world, refuse_unnamed
from envs.minigrid.level import Level, enlarge
from envs.minigrid.observations import Observer, observer_of
from envs.minigrid.pool import canvas
from envs.minigrid.world import first_levels, play_levels
from envs.types import World
from experiments.common import opening
from experiments.common.gridworlds import gridworld_settings, view_options
from experiments.evaluation import evaluation_table
from experiments.evaluation.evaluation_table import FROZEN, UNIFORM, UNTRAINED, EvaluationRow

PlayedWorld = dict[str, Episodes]  # policy -> [seeds, episodes]

# Drawing takes a moment whatever XLA does to its code; compiling would take most of the time.
COMPILED_QUICKLY = {"xla_backend_optimization_level": 0}


class EvaluatedRun(NamedTuple):
    """A run whose policies are evaluated."""

    directory: RunDirectory
    settings: RunSettings
    environments: tuple[str, ...]  # to play
    policies: Policies
    unmeasured: tuple[str, ...] = ()  # what means nothing there (`World.unmeasured`)


def open_run(
    path: Path, environments: tuple[str, ...], checkpoint: Checkpoint, console: Console
) -> EvaluatedRun:
    """Load a run's policies.

    Args:
        path: the run's directory.
        environments: worlds to play (none: the paper's ten, or the task that the run learnt).
        checkpoint: frames of the checkpoint (None: a task's best, else the newest).
        console: reports damaged checkpoints.
    """
    directory = RunDirectory(path)
    settings = gridworld_settings(directory)
    played = environments or (TRANSFER if settings.explore else settings.environments)
    alone = any(map(is_whole_world, played))  # which is refused with others
    options = view_options(settings)
    world = make_world(played if alone else played[:1], 1, explore=False, **options)
    try:
        policies = load_policies(directory, settings, world, checkpoint)
    except RunDirectoryError:
        if not environments:
            refuse_unnamed(settings.environments)
        raise
    opening.tell_damaged(policies.loaded, console)
    if options:
        observer_of([find(name) for name in played], **options)  # refuses grids that are too large
    # On the host: an accelerator need not hold the policies of all runs.
    policies = policies._replace(params=jax.device_get(policies.params))
    return EvaluatedRun(directory, settings, played, policies, world.unmeasured)


def play(
    runs: Sequence[EvaluatedRun], episodes: int, seed: int, console: Console
) -> list[list[EvaluationRow]]:
    """Play every policy in every world, all on the same levels; return the rows of each run."""
    found: list[dict[str, PlayedWorld]] = [{} for _ in runs]
    for name, played in play_each_world(runs, episodes, seed, console):
        for index, policies in played.items():
            found[index][name] = policies
    return [table(run, of_run, seed) for run, of_run in zip(runs, found, strict=True)]


def play_each_world(
    runs: Sequence[EvaluatedRun], episodes: int, seed: int, console: Console
) -> Iterator[tuple[str, dict[int, PlayedWorld]]]:
    """Play world by world: one program plays all gridworlds, another each `World` of your own.

    Yields:
        A world's name, and the episodes of each run that plays it, by the run's index.
    """
    world_key, action_key = jax.random.split(jax.random.key(seed))
    names = list(dict.fromkeys(name for run in runs for name in run.environments))
    own = [name for name in names if is_whole_world(name)]
    for name in own:
        with console.status(f"playing {name}"):
            playing = _Playing(partial(_own_world, name, episodes), runs)
            played = interruptible(partial(playing.play, name, world_key, action_key))
        yield name, played
    names = [name for name in names if name not in own]
    if not names:
        return
    longest = max(find(name).max_steps for name in names)
    playing = _Playing(partial(play_levels, episodes, longest), runs)
    with levels_ahead(names, world_key, episodes) as drawn:
        for number, (name, levels) in enumerate(zip(names, drawn, strict=True), 1):
            with console.status(f"playing {name} ({number} of {len(names)})"):
                played = interruptible(partial(playing.play, name, levels, action_key))
            yield name, played


def _own_world(name: str, episodes: int, observer: Observer | None) -> World:
    return make_world((name,), episodes, explore=False)  # which shows its own views


class _Playing:
    """The programs in which runs play worlds, one for each episode; `make` takes an observer."""

    def __init__(
        self, make: Callable[[Observer | None], World], runs: Sequence[EvaluatedRun]
    ) -> None:
        self._make, self._runs, world = make, runs, make(None)
        self._play_uniform = make_evaluator(world, uniform(world.num_actions))
        self._programs: dict[Any, tuple[Evaluator, Initializer]] = {}

    def play(
        self, name: str, begins: Future[Level] | PRNGKeyArray, action_key: PRNGKeyArray
    ) -> dict[int, PlayedWorld]:
        """Return the episodes of each run that plays a world, by the run's index."""
        beginning = begins.result() if isinstance(begins, Future) else begins
        by_chance = self._play_uniform(NOTHING_LEARNT, beginning, action_key)
        played = {}
        for index, run in enumerate(self._runs):
            if name not in run.environments:
                continue
            # Compiled once, one program plays for all runs of the same networks.
            transfer, agent = run.settings.transfer, run.policies.agent
            options = view_options(run.settings)
            alike = transfer and replace(transfer, run="", frames=0)
            kind = run.settings.train.network, alike, *options.items()
            if kind not in self._programs:
                world = self._make(observer_of([find(name)], **options) if options else None)
                self._programs[kind] = make_evaluator(world, agent), make_initializer(agent)
            evaluate, init = self._programs[kind]
            fresh = untrained(run.policies, run.settings, init)
            played[index] = {
                run.settings.player: evaluate(run.policies.params, beginning, action_key),
                (FROZEN if transfer else UNTRAINED): evaluate(fresh, beginning, action_key),
                UNIFORM: by_chance,
            }
        return played


@contextmanager
def levels_ahead(
    names: Sequence[str], key: PRNGKeyArray, episodes: int
) -> Iterator[list[Future[Level]]]:
    """Draw the levels of all environments while the block runs, in threads for each core.

    Yields:
        The levels of each environment, `[episodes]`, all in arrays of one size.
    """
    generators = [find(name) for name in names]
    rows, columns = canvas(generators)

    def draw(generator: Generator) -> Level:
        def levels(key: PRNGKeyArray) -> Level:
            drawn = first_levels(generator, key, episodes)
            return jax.vmap(lambda level: enlarge(level, rows, columns))(drawn)

        return jax.jit(levels, compiler_options=COMPILED_QUICKLY)(key)

    threads = ThreadPoolExecutor(devices.cores())
    try:
        yield [threads.submit(draw, generator) for generator in generators]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def table(run: EvaluatedRun, played: dict[str, PlayedWorld], seed: int) -> list[EvaluationRow]:
    """Return a run's rows: for each world, and for all worlds together if there are several."""
    if len(played) > 1:
        worlds = list(played.values())
        concatenate = partial(jax.tree.map, lambda *leaves: np.concatenate(leaves, axis=1))
        together = {name: concatenate(*(world[name] for world in worlds)) for name in worlds[0]}
        played = {**played, evaluation_table.ALL_WORLDS: together}
    rows: list[EvaluationRow] = []
    for environment, policies in played.items():
        for name, episodes in policies.items():
            first_seed = seed if name == UNIFORM else run.settings.first_seed
            rows += evaluation_table.rows(name, first_seed, environment, episodes, run.unmeasured)
    return rows
