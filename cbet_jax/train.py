"""Training as one pure function of settings and key, for any number of seeds at once.

An iteration plays `rollouts` sequences in every world, then learns from all of them in
batches, oldest first (V-trace corrects the lag). A chunk is a scan over iterations; the
host calls it again and again.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from cbet_jax import sharding
from cbet_jax.agent import Agent, AgentParams, network_agent
from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.intrinsic.types import Intrinsic
from cbet_jax.learner import LearnerState, begin_learner, make_optimizer, update
from cbet_jax.rollout import ActorState, Events, begin_actor, rollout
from cbet_jax.sharding import SEEDS, Spread
from cbet_jax.types import Trajectory
from envs.types import World

Metrics = dict[str, Float[Array, ""]]


class TrainState(NamedTuple):
    """Everything that training carries on; a run continues from it bit for bit."""

    learner: LearnerState
    actor: ActorState
    key: PRNGKeyArray
    iteration: Int[Array, ""]  # iterations done

    @property
    def params(self) -> Any:
        """What is learnt of the policy."""
        return self.learner.policy


class Program(NamedTuple):
    """A compiled training run. States and metrics have a leading axis of seeds."""

    init: Any  # jitted: keys [seeds] -> TrainState
    advance: Any  # jitted: TrainState -> (TrainState, metrics [iterations, seeds]); donates
    iterations_per_chunk: int
    frames_per_iteration: int  # for each seed
    put: Callable[[Any], Any] = lambda state: state  # brings a TrainState read from disk to where
    # `advance` expects it


class Trainer(NamedTuple):
    """The parts of a run, for one seed."""

    settings: TrainSettings
    world: World
    intrinsic: Intrinsic
    agent: Agent
    optimizer: optax.GradientTransformation
    spread: Spread = sharding.ALONE  # of its worlds over devices


def make_trainer(
    settings: TrainSettings, world: World, agent: Agent | None = None, mesh: Mesh | None = None
) -> Trainer:
    """Puts the parts of a run together.

    Args:
        settings: of the run.
        world: the worlds of one seed.
        agent: who acts and learns (None: one network, as the settings say).
        mesh: the devices (None: one).

    Raises:
        SettingsError: the method is unknown, or cannot be had with these settings.
    """
    return Trainer(
        settings=settings,
        world=world,
        intrinsic=make_intrinsic(settings, world.num_actions),
        agent=agent or network_agent(settings.network, world.num_actions, world.view_shape),
        optimizer=make_optimizer(
            settings.optimizer, settings.frames, settings.batch * settings.unroll
        ),
        spread=sharding.spread(mesh, world.num_worlds),
    )


def make_program(
    settings: TrainSettings,
    world: World,
    seeds: int,
    iterations_per_chunk: int,
    seeds_at_once: int | None = None,
    agent: Agent | None = None,
    mesh: Mesh | None = None,
) -> Program:
    """Returns the compiled program that trains `seeds` agents, each with its own worlds.

    Args:
        settings: of the run.
        world: the worlds of one seed.
        seeds: how many agents.
        iterations_per_chunk: iterations in one call of `advance`.
        seeds_at_once: how many seeds are computed side by side, the rest after them. One on
            a CPU, where a wider batch only leaves the cache; all on an accelerator.
        agent: who acts and learns (None: one network, as the settings say).
        mesh: the devices that seeds and worlds are laid out over (None: one device).
    """
    trainer = make_trainer(settings, world, agent, mesh)
    in_a_row = seeds // mesh.shape[SEEDS] if mesh else seeds
    at_once = seeds_at_once or (1 if jax.default_backend() == "cpu" else in_a_row)

    def over_seeds(function: Callable) -> Callable:
        if in_a_row == 1:
            each = lambda tree: _grow(function(jax.tree.map(lambda leaf: leaf[0], tree)))  # noqa: E731
        else:
            batch_size = at_once if at_once > 1 else None
            each = lambda tree: jax.lax.map(function, tree, batch_size=batch_size)  # noqa: E731
        return sharding.over_seeds(mesh, each)

    def advance(state: TrainState) -> tuple[TrainState, dict[str, Array]]:
        chunk = lambda state: jax.lax.scan(  # noqa: E731
            lambda state, _: iterate(trainer, state), state, length=iterations_per_chunk
        )
        state, metrics = over_seeds(chunk)(state)
        return state, {name: values.T for name, values in metrics.items()}

    begin = over_seeds(lambda key: init(trainer, key))
    compiled = partial(jax.jit, compiler_options=sharding.compiler_options(mesh))
    program = Program(
        init=compiled(begin),
        advance=compiled(advance, donate_argnums=0),
        iterations_per_chunk=iterations_per_chunk,
        frames_per_iteration=settings.iteration_frames,
    )
    if mesh is None:
        return program
    placed = sharding.state_shardings(
        mesh, jax.eval_shape(begin, seed_keys(seeds)), world.num_worlds
    )
    everywhere = NamedSharding(mesh, PartitionSpec())
    return program._replace(
        init=compiled(begin, in_shardings=everywhere, out_shardings=placed),
        advance=compiled(
            advance, in_shardings=(placed,), out_shardings=(placed, everywhere), donate_argnums=0
        ),
        put=lambda state: sharding.put(state, placed),
    )


def seed_keys(seeds: int, first_seed: int = 0) -> Key[Array, " seeds"]:
    """Returns one key a seed: `[seeds]`."""
    return jax.vmap(jax.random.key)(jnp.arange(first_seed, first_seed + seeds))


def init(trainer: Trainer, key: PRNGKeyArray) -> TrainState:
    """Returns the state of one seed before its first step."""
    agent_key, world_key, memory_key, train_key = jax.random.split(key, 4)
    recurrent = trainer.agent.initial_state(trainer.world.num_worlds)
    actor = begin_actor(world_key, trainer.world, (), recurrent)
    auxiliary, memory = trainer.intrinsic.init(memory_key, actor.step)
    learner = begin_learner(trainer.agent.init(agent_key), auxiliary, trainer.optimizer)
    actor = trainer.spread.actor(actor._replace(memory=memory))
    return TrainState(learner, actor, train_key, jnp.zeros((), jnp.int32))


def iterate(trainer: Trainer, state: TrainState) -> tuple[TrainState, Metrics]:
    """Plays and learns once: rollouts, then updates."""
    key, rollout_key = jax.random.split(state.key)
    frames = state.iteration.astype(jnp.float32) * trainer.settings.iteration_frames
    learner = state.learner._replace(fixed=trainer.agent.schedule(state.learner.fixed, frames))
    actor, trajectories, events = play(trainer, learner.agent, state.actor, rollout_key)
    learner, update_metrics = learn(trainer, learner, trajectories)
    metrics = {
        **update_metrics,
        **_episode_metrics(events, trainer.world.environments),
        **trainer.intrinsic.report(actor.memory),
        **trainer.world.report(actor.world),
    }
    actor = trainer.spread.actor(actor)
    return TrainState(learner, actor, key, state.iteration + 1), metrics


def play(
    trainer: Trainer, params: AgentParams, actor: ActorState, key: PRNGKeyArray
) -> tuple[ActorState, Trajectory, Events]:
    """Plays the rollouts of an iteration; trajectories get a leading axis of rollouts."""

    def play_once(
        actor: ActorState, key: PRNGKeyArray
    ) -> tuple[ActorState, tuple[Trajectory, Events]]:
        actor = actor._replace(world=trainer.world.refresh(actor.world))
        actor, trajectory, events = rollout(
            params,
            actor,
            key,
            trainer.agent,
            trainer.world,
            trainer.intrinsic,
            trainer.settings.unroll,
        )
        return actor, (trajectory, events)

    keys = jax.random.split(key, trainer.settings.rollouts)
    actor, (trajectories, events) = jax.lax.scan(play_once, actor, keys)
    return actor, trajectories, events


def learn(
    trainer: Trainer, learner: LearnerState, trajectories: Trajectory
) -> tuple[LearnerState, Metrics]:
    """Learns from every sequence once, batch by batch, oldest first."""
    batches = split_batches(trajectories, trainer.settings.updates)

    def learn_once(learner: LearnerState, batch: Trajectory) -> tuple[LearnerState, Metrics]:
        return update(
            learner,
            batch,
            trainer.agent,
            trainer.intrinsic,
            trainer.optimizer,
            trainer.settings,
            trainer.spread.mean,
        )

    learn_each = lambda learner, batches: jax.lax.scan(learn_once, learner, batches)  # noqa: E731
    learner, metrics = trainer.spread.learn(learn_each)(learner, batches)
    loss = metrics.pop("loss")
    means = {name: values.mean(0) for name, values in metrics.items()}
    return learner, {**means, "first_bad_update": _first_bad(loss)}


def split_batches(trajectories: Trajectory, batches: int) -> Trajectory:
    """Regroups `[rollouts, T, worlds]` into `[batches, T, sequences]`, oldest sequences first."""

    def regroup(leaf: Array) -> Array:  # [rollouts, X, worlds, ...]
        sequences = jnp.moveaxis(leaf, 1, 2).reshape(batches, -1, leaf.shape[1], *leaf.shape[3:])
        return jnp.moveaxis(sequences, 2, 1)

    return jax.tree.map(regroup, trajectories)


def _first_bad(loss: Float[Array, " updates"]) -> Float[Array, ""]:
    """Returns the index of the first update whose loss is not finite, NaN if all are."""
    bad = ~jnp.isfinite(loss)
    return jnp.where(bad.any(), jnp.argmax(bad), jnp.nan)


def _episode_metrics(events: Events, environments: tuple[str, ...]) -> Metrics:
    """Returns means over the episodes that ended, of all worlds and of each; NaN if none did."""
    metrics = {}
    for index, name in [(None, ""), *((i, f"/{e}") for i, e in enumerate(environments))]:
        mask = events.ended if index is None else events.ended & (events.environment == index)
        mean = lambda values: jnp.where(mask, values, 0).sum() / mask.sum()  # noqa: B023, E731
        metrics[f"success{name}"] = mean(events.episode_success)
        metrics[f"extrinsic_return{name}"] = mean(events.episode_return)
        metrics[f"episode_length{name}"] = mean(events.episode_length)
        metrics[f"interactions{name}"] = mean(events.episode_interactions)
    return metrics


def _grow(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[None], tree)
