"""Load the players of a gridworld: a run's policy, or a uniformly random one."""

from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console

from cbet_jax.agent import AgentParams, uniform
from cbet_jax.config import RunSettings, TrainSettings
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.intrinsic.interface import Intrinsic
from cbet_jax.intrinsic.none import NONE
from cbet_jax.runs import metrics_table
from cbet_jax.runs.checkpoint import OtherProgramError, fill
from cbet_jax.runs.directory import BEST, Checkpoint, RunDirectory, RunDirectoryError
from cbet_jax.runs.saved_policies import LoadedParams, frames_of_seeds, load_policies
from envs.minigrid import rules
from envs.types import World
from experiments.common import opening
from experiments.watching.playing import Player

RECENT = 0.1  # interactions are averaged over this last share of a run's rows


def random_player() -> Player:
    """Return a uniformly random player, rewarded by C-BET."""
    actions = len(rules.ACTIONS)
    intrinsic = make_intrinsic(TrainSettings(), actions)
    return Player("uniformly random", uniform(actions), AgentParams(()), intrinsic, None)


def saved_player(
    directory: RunDirectory,
    settings: RunSettings,
    world: World,
    seed_index: int,
    checkpoint: Checkpoint,
    console: Console,
) -> Player:
    """Load the policy of one of a run's seeds, rewarded by the run's method.

    Args:
        directory: the run's directory.
        settings: the run's settings.
        world: the world that the policy must fit.
        seed_index: the index of the seed that plays.
        checkpoint: frames of the checkpoint (None: a task's best, else the newest good one).
        console: reports damaged checkpoints.
    """
    policies = load_policies(directory, settings, world, checkpoint)
    opening.tell_damaged(policies.loaded, console)
    intrinsic, networks = _saved_method(settings, world, policies.loaded)
    params, networks = jax.tree.map(lambda leaf: leaf[seed_index], (policies.params, networks))
    title = describe(settings, seed_index, policies.loaded)
    return Player(title, policies.agent, params, intrinsic, networks)


def _saved_method(
    settings: RunSettings, world: World, loaded: LoadedParams
) -> tuple[Intrinsic, Any]:
    """Return a run's method and its networks at a checkpoint, if it has any: `[seeds, ...]`.

    Without the networks, the reward is NaN.
    """
    intrinsic = make_intrinsic(settings.train.for_episodes(world.max_steps), world.num_actions)
    key = jax.random.key(0)
    _, step = jax.eval_shape(world.init, key)
    shapes, _ = jax.eval_shape(intrinsic.init, key, step)
    if not jax.tree.leaves(shapes):
        return intrinsic, shapes
    of_seeds = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((settings.seeds, *leaf.shape), leaf.dtype), shapes
    )
    try:
        state = fill({"learner": {"intrinsic": of_seeds}}, loaded.method, loaded.path)
    except OtherProgramError as error:
        if error.found_shape is None:
            return NONE._replace(reward=lambda _, played: played.steps.action * jnp.nan), ()
        raise
    return intrinsic, state["learner"]["intrinsic"]


def describe(settings: RunSettings, seed_index: int, loaded: LoadedParams) -> str:
    """Return a player's title."""
    seed = settings.first_seed + seed_index
    frames = frames_of_seeds(loaded, settings.seeds)[seed_index]
    best = "best by " if loaded.path.parent.name == BEST else ""
    return f"{settings.player}, seed {seed}, {best}{frames:,} frames"


def liveliest(directory: RunDirectory, settings: RunSettings) -> str:
    """Return the run's world with the most interactions at the end of training, or its first."""
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
