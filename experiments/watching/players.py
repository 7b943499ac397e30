"""Who plays a gridworld: the policy of a run, or chance."""

from typing import Any

import jax
from rich.console import Console

from cbet_jax.agent import AgentParams, uniform
from cbet_jax.config import RunSettings, TrainSettings
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.intrinsic.types import Intrinsic
from cbet_jax.runs import metrics_table
from cbet_jax.runs.checkpoint import Loaded
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from cbet_jax.runs.saved_policies import load, load_policies
from envs.minigrid import rules
from envs.types import World
from experiments.common import opening
from experiments.watching.playing import Player

RECENT = 0.1  # the last share of a run's rows, over which interactions are averaged


def random_player() -> Player:
    """Return a player that draws every action with the same chance, rewarded by C-BET."""
    actions = len(rules.ACTIONS)
    intrinsic = make_intrinsic(TrainSettings(), actions)
    return Player("uniformly random", uniform(actions), AgentParams(()), intrinsic, None)


def saved_player(
    directory: RunDirectory,
    settings: RunSettings,
    world: World,
    seed_index: int,
    checkpoint: int | None,
    console: Console,
) -> Player:
    """Load the policy of one of a run's seeds, rewarded by the run's method.

    Args:
        directory: of the run.
        settings: of the run.
        world: which the policy must fit.
        seed_index: which of the run's seeds plays.
        checkpoint: frames of the checkpoint (None: the newest good one).
        console: where damaged checkpoints are reported.

    Raises:
        RunDirectoryError: there is no good checkpoint.
    """
    policies = load_policies(directory, settings, world, checkpoint)
    opening.tell_damaged(policies.loaded, console)
    intrinsic = make_intrinsic(settings.train, world.num_actions)
    networks = _saved_networks(directory, settings, world, intrinsic, policies.loaded)
    params, networks = jax.tree.map(lambda leaf: leaf[seed_index], (policies.params, networks))
    title = describe(settings, seed_index, policies.loaded)
    return Player(title, policies.agent, params, intrinsic, networks)


def _saved_networks(
    directory: RunDirectory,
    settings: RunSettings,
    world: World,
    intrinsic: Intrinsic,
    loaded: Loaded,
) -> Any:
    """Load the networks of the intrinsic method, arrays [seeds, ...]; a method may have none."""
    key = jax.random.key(0)
    _, step = jax.eval_shape(world.init, key)
    shapes, _ = jax.eval_shape(intrinsic.init, key, step)
    if not jax.tree.leaves(shapes):
        return shapes
    of_seeds = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((settings.seeds, *leaf.shape), leaf.dtype), shapes
    )
    template = {"learner": {"intrinsic": of_seeds}}
    found = load(directory, template, loaded.position.frames)
    return found.state["learner"]["intrinsic"]


def describe(settings: RunSettings, seed_index: int, loaded: Loaded) -> str:
    """Return who plays, for people to read."""
    seed = settings.first_seed + seed_index
    return f"{settings.train.method}, seed {seed}, {loaded.position.frames:,} frames"


def liveliest(directory: RunDirectory, settings: RunSettings) -> str:
    """Return the run's world with the most interactions an episode at the end of training.

    It is the first world where the run has no such numbers.
    """
    if len(settings.environments) == 1:
        return settings.environments[0]
    try:
        table = metrics_table.read_verified(directory)
    except (OSError, RunDirectoryError):  # no table yet, or a damaged one
        table = {}

    def interactions(environment: str) -> float:
        seeds = table.get(f"interactions/{environment}", {}).values()
        recent = [seed.values[-max(1, round(RECENT * len(seed.values))) :] for seed in seeds]
        return sum(values.mean() for values in recent) / len(recent) if recent else 0.0

    return max(settings.environments, key=interactions)
