"""Training of one agent, as pure functions of its settings and a key.

An iteration plays `rollouts` sequences in every world, then learns from all of them in batches,
oldest first. By the later batches the policy has changed since it acted; V-trace corrects for that.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, PRNGKeyArray

from cbet_jax import sharding
from cbet_jax.agent import Agent, world_agent
from cbet_jax.config import SettingsError, TrainSettings
from cbet_jax.episode_records import CurrentEpisodes, with_episode_records
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.intrinsic.interface import Intrinsic, Memory
from cbet_jax.learner import LearnerState, Optimizers, begin_learner, make_optimizers, update
from cbet_jax.rollout import ActorState, Played, begin_actor, rollout
from cbet_jax.settings.swept import traced, with_numbers
from cbet_jax.sharding import ONE_DEVICE, DataParallel
from cbet_jax.types import Metrics, Trajectory, joined
from envs.types import EPISODE_METRICS, World


class TrainState(NamedTuple):
    """Everything that one iteration hands to the next. A checkpoint stores it."""

    learner: LearnerState
    actor: ActorState
    memory: Memory  # memory of the intrinsic method; () if it has none
    key: PRNGKeyArray
    iteration: Int[Array, ""]  # iterations done


class Trainer(NamedTuple):
    """The parts of a run, for one seed."""

    settings: TrainSettings
    world: World
    agent: Agent
    parallel: DataParallel = ONE_DEVICE

    @property
    def intrinsic(self) -> Intrinsic:
        """The method that the settings name."""
        return make_intrinsic(self.settings, self.world.num_actions)

    @property
    def optimizers(self) -> Optimizers:
        """The optimizers that the settings describe."""
        return make_optimizers(self.settings)

    def with_numbers(self, numbers: TrainSettings) -> "Trainer":
        """Return the trainer of an agent whose settings have these numbers, if not None."""
        return self._replace(settings=with_numbers(self.settings, numbers))


def make_trainer(
    settings: TrainSettings, world: World, agent: Agent | None = None, mesh: Mesh | None = None
) -> Trainer:
    """Put the parts of a run together.

    Args:
        settings: of the run.
        world: the worlds of one seed.
        agent: acts and learns (None: one network, as the settings say).
        mesh: the devices (None: one device).

    Raises:
        SettingsError: the method is unknown, or does not work with these settings or worlds.
    """
    method = make_intrinsic(settings, world.num_actions)
    by_loss = settings.loss.bootstrap == "final"
    asked = by_loss or (method.final_views and settings.auxiliary.final_views)
    if asked and world.step_with_final is None:
        raise SettingsError(
            "loss.bootstrap=final and auxiliary.final_views need the views in which episodes end, "
            f"which {world.environments[0]} does not give: leave them out"
        )
    if by_loss or method.final_views:
        world = world.with_final_views()
    agent = agent or world_agent(settings.network, None, world)
    parallel = sharding.data_parallel(mesh, world.num_worlds)
    return Trainer(settings, with_episode_records(world), agent, parallel)


def init(trainer: Trainer, key: PRNGKeyArray) -> TrainState:
    """Return the state of one seed before its first step."""
    agent_key, world_key, memory_key, train_key = jax.random.split(key, 4)
    actor = begin_actor(trainer.agent, trainer.world, world_key)
    auxiliary, memory = trainer.intrinsic.init(memory_key, actor.step)
    learner = begin_learner(trainer.agent.init(agent_key), auxiliary, trainer.optimizers)
    actor, memory = trainer.parallel.constrain((actor, memory))
    return TrainState(learner, actor, memory, train_key, jnp.zeros((), jnp.int32))


def iterate(trainer: Trainer, state: TrainState) -> tuple[TrainState, Metrics]:
    """Play the rollouts of an iteration, then learn from them."""
    key, rollout_key = jax.random.split(state.key)
    frames = state.iteration.astype(jnp.float32) * trainer.settings.iteration_frames
    learner = state.learner._replace(fixed=trainer.agent.schedule(state.learner.fixed, frames))
    played = play(trainer, learner, state.actor, state.memory, rollout_key)
    learner, update_metrics = learn(trainer, learner, played.trajectory)
    metrics = joined(
        trainer.intrinsic.metrics(played.memory),
        update_metrics,
        trainer.world.report(played.actor.world),
        _episode_metrics(played.episodes, trainer.world),
    )
    actor, memory = trainer.parallel.constrain((played.actor, played.memory))
    return TrainState(learner, actor, memory, key, state.iteration + 1), metrics


def play(
    trainer: Trainer, learner: LearnerState, actor: ActorState, memory: Memory, key: PRNGKeyArray
) -> Played:
    """Play the rollouts of an iteration; trajectories and episodes get a leading axis of rollouts.

    Args:
        trainer: the parts of the run.
        learner: its policy acts.
        actor: the state before the first rollout.
        memory: the intrinsic method's before the first rollout.
        key: draws actions, and what the intrinsic method draws.
    """
    world, intrinsic = trainer.world, trainer.intrinsic

    def play_once(
        state: tuple[ActorState, Memory], key: PRNGKeyArray
    ) -> tuple[tuple[ActorState, Memory], tuple[Trajectory, CurrentEpisodes]]:
        actor, memory = state
        actor = actor._replace(world=world.refresh(actor.world))
        parts = trainer.agent, world, intrinsic, learner.agent, learner.intrinsic
        played = rollout(*parts, actor, memory, key, trainer.settings.unroll)
        return (played.actor, played.memory), (played.trajectory, played.episodes)

    keys = jax.random.split(key, trainer.settings.rollouts)
    (actor, memory), played = jax.lax.scan(play_once, (actor, memory), keys)
    return Played(actor, memory, *played)


def learn(
    trainer: Trainer, learner: LearnerState, trajectories: Trajectory
) -> tuple[LearnerState, Metrics]:
    """Learn from every sequence once, batch by batch, oldest first."""

    def learn_each(
        learner: LearnerState, batches: Trajectory, numbers: TrainSettings
    ) -> tuple[LearnerState, Metrics]:
        here = trainer.with_numbers(numbers)

        def learn_once(learner: LearnerState, batch: Trajectory) -> tuple[LearnerState, Metrics]:
            parts = here.agent, here.intrinsic, here.optimizers, here.settings
            return update(*parts, learner, batch, here.parallel.mean)

        return jax.lax.scan(learn_once, learner, batches)

    # `shard_map` cannot close over traced numbers: they are passed as arguments.
    shared = trainer.parallel.shard_learner(learn_each)
    batches = split_batches(trajectories, trainer.settings.updates)
    learner, metrics = shared(learner, batches, traced(trainer.settings))
    loss = metrics.pop("loss")
    means = {name: values.mean(0) for name, values in metrics.items()}
    return learner, {**means, "first_bad_update": _first_bad(loss)}


def split_batches(trajectories: Trajectory, batches: int) -> Trajectory:
    """Regroup `[rollouts, T, worlds]` into `[batches, T, sequences]`, oldest sequences first."""

    def regroup(leaf: Array) -> Array:  # [rollouts, X, worlds, ...]
        sequences = jnp.moveaxis(leaf, 1, 2).reshape(batches, -1, leaf.shape[1], *leaf.shape[3:])
        return jnp.moveaxis(sequences, 2, 1)

    return jax.tree.map(regroup, trajectories)


def _first_bad(loss: Float[Array, " updates"]) -> Float[Array, ""]:
    """Return the index of the first update whose loss is not finite, NaN if all are."""
    bad = ~jnp.isfinite(loss)
    return jnp.where(bad.any(), jnp.argmax(bad), jnp.nan)


def _episode_metrics(episodes: CurrentEpisodes, world: World) -> Metrics:
    """Return the number of ended episodes, and means over them, overall and by environment."""
    values = {
        "success": episodes.success,
        "extrinsic_return": episodes.extrinsic_return,
        "episode_length": episodes.length,
        "interactions": episodes.interactions,
    }
    measured = [metric for metric in EPISODE_METRICS if metric not in world.unmeasured]
    groups = ["", *(f"/{name}" for name in world.environments)]
    ended, environments = episodes.ended, range(len(world.environments))
    masks = jnp.stack([ended, *(ended & (episodes.environment == i) for i in environments)])

    def total(values: Array | float) -> Float[Array, " groups"]:
        return jnp.where(masks, values, 0).sum(tuple(range(1, masks.ndim)), dtype=jnp.float32)

    count = total(1.0)
    means = {metric: total(values[metric]) / count for metric in measured}
    return {
        f"{name}{group}": of_groups[index]
        for index, group in enumerate(groups)
        for name, of_groups in {"episodes": count, **means}.items()
    }
