"""Training as one pure function of settings and key, for any number of seeds at once.

An iteration plays `rollouts` sequences in every world, then learns from all of them in
batches, oldest first. By the later batches the policy has changed since it acted; V-trace corrects
for that. A chunk is a scan over iterations; the
host calls it again and again.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from cbet_jax import sharding
from cbet_jax.agent import Agent, world_agent
from cbet_jax.config import SettingsError, TrainSettings
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.intrinsic.types import Intrinsic
from cbet_jax.learner import LearnerState, Optimizers, begin_learner, make_optimizers, update
from cbet_jax.rollout import ActorState, Events, begin_actor, rollout
from cbet_jax.runs.devices import compiler_options
from cbet_jax.runs.json_files import first_difference, to_json
from cbet_jax.setting_types import numbers, with_numbers, without_numbers
from cbet_jax.sharding import ONE_DEVICE, SEEDS, DataParallel, Numbers
from cbet_jax.types import ArrayTree, Metrics, SameType, Trajectory, unchanged
from envs.types import World


class TrainState(NamedTuple):
    """Everything that one iteration hands to the next. A checkpoint stores it."""

    learner: LearnerState
    actor: ActorState
    key: PRNGKeyArray
    iteration: Int[Array, ""]  # iterations done

    @property
    def params(self) -> ArrayTree:
        """The learnt parameters of the policy."""
        return self.learner.policy


@runtime_checkable
class Jitted[X, Y](Protocol):
    """A compiled function of one argument."""

    def __call__(self, argument: X, /) -> Y:
        """Call the compiled function."""

    def lower(self, argument: X, /) -> jax.stages.Lowered:
        """Lower the function, as JAX does, without running it."""


class Program(NamedTuple):
    """A compiled training run. States and metrics have a leading axis of seeds.

    A program of several settings has all seeds of the first settings, then those of the next.
    """

    init: Jitted[Key[Array, " seeds"], TrainState]
    advance: Jitted[
        TrainState, tuple[TrainState, Metrics]
    ]  # metrics [iterations, seeds]; donates the state
    iterations_per_chunk: int
    frames_per_iteration: int  # for each seed
    to_devices: SameType = unchanged  # moves a state read from disk to where `advance` expects it


class Trainer(NamedTuple):
    """The parts of a run, for one seed."""

    settings: TrainSettings
    world: World
    intrinsic: Intrinsic
    agent: Agent
    optimizers: Optimizers
    parallel: DataParallel = ONE_DEVICE
    numbers: Numbers | None = None  # of its settings that differ between the runs of a program


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
        SettingsError: the method is unknown, or does not work with these settings.
    """
    return Trainer(
        settings=settings,
        world=world,
        intrinsic=make_intrinsic(settings, world.num_actions),
        agent=agent or world_agent(settings.network, None, world),
        optimizers=make_optimizers(settings),
        parallel=sharding.data_parallel(mesh, world.num_worlds),
    )


def make_program(
    settings: TrainSettings | Sequence[TrainSettings],
    world: World,
    seeds: int,
    iterations_per_chunk: int,
    seeds_at_once: int | None = None,
    agent: Agent | None = None,
    mesh: Mesh | None = None,
) -> Program:
    """Return the compiled program that trains one agent for each seed, each with its own worlds.

    It is written for the platform of the worlds.

    Args:
        settings: of the run, or of several runs that differ in real numbers only (rates, weights,
            probabilities above 0) and are trained beside each other, as seeds are.
        world: the worlds of one seed.
        seeds: number of agents, for each of the settings.
        iterations_per_chunk: iterations in one call of `advance`.
        seeds_at_once: how many seeds are computed side by side, the rest after them (None: all
            on an accelerator; 1 on a CPU, whose cache does not hold more).
        agent: acts and learns (None: one network, as the settings say).
        mesh: the devices that seeds and worlds are laid out over (None: one device).

    Raises:
        SettingsError: the method is unknown, or does not work with these settings, or the
            settings differ in more than numbers.
    """
    several = (settings,) if isinstance(settings, TrainSettings) else tuple(settings)
    values = differing_numbers(several)
    agents = len(several) * seeds
    in_row = agents // mesh.shape[SEEDS] if mesh else agents
    at_once = seeds_at_once or (1 if world.platform == "cpu" else in_row)
    of_each_agent = {name: np.repeat(numbers, seeds) for name, numbers in values.items()}
    trainer = make_trainer(several[0], world, agent, mesh)

    def over_agents[X, Y](function: Callable[[Trainer, X], Y], argument: X) -> Y:
        def of_one(inputs: tuple[Numbers, X]) -> Y:
            return function(_trainer_with(trainer, inputs[0]), inputs[1])

        mapped = sharding.over_seeds(mesh, partial(_map_seeds, of_one, in_row, at_once))
        return mapped((of_each_agent, argument))

    def begin(keys: Key[Array, " seeds"]) -> TrainState:
        return over_agents(init, keys)

    def advance(state: TrainState) -> tuple[TrainState, Metrics]:
        state, metrics = over_agents(partial(_chunk, iterations_per_chunk), state)
        return state, {name: values.T for name, values in metrics.items()}

    jit = partial(jax.jit, compiler_options=compiler_options(mesh))
    program = Program(
        init=jit(begin),
        advance=jit(advance, donate_argnums=0),
        iterations_per_chunk=iterations_per_chunk,
        frames_per_iteration=several[0].iteration_frames,
    )
    if mesh is None:
        return program
    states = jax.eval_shape(program.init, seed_keys(agents))
    placed = sharding.state_shardings(mesh, states, world.num_worlds)
    everywhere = NamedSharding(mesh, PartitionSpec())
    return program._replace(
        init=jit(begin, in_shardings=everywhere, out_shardings=placed),
        advance=jit(
            advance, in_shardings=(placed,), out_shardings=(placed, everywhere), donate_argnums=0
        ),
        to_devices=partial(sharding.to_devices, shardings=placed),
    )


def differing_numbers(several: Sequence[TrainSettings]) -> dict[str, Float[np.ndarray, " runs"]]:
    """Return the numbers in which the settings of one program differ, by name.

    Raises:
        SettingsError: they differ in more than numbers.
    """
    alike = [to_json(without_numbers(settings)) for settings in several]
    for other in alike[1:]:
        if difference := first_difference(alike[0], other):
            raise SettingsError(
                f"runs of one program differ in real numbers only, and these in more: {difference}"
            )
    found = [numbers(settings) for settings in several]
    columns = {name: [each[name] for each in found] for name in found[0]}
    return {
        name: np.array(values, np.float32)
        for name, values in columns.items()
        if len(set(values)) > 1
    }


def _trainer_with(trainer: Trainer, numbers: Numbers | None) -> Trainer:
    """Return a trainer with other numbers in its settings, arrays of the function being traced."""
    if not numbers:
        return trainer
    settings = with_numbers(trainer.settings, numbers)
    return trainer._replace(
        settings=settings,
        intrinsic=make_intrinsic(settings, trainer.world.num_actions),
        optimizers=make_optimizers(settings),
        numbers=numbers,
    )


def seed_keys(seeds: int, first_seed: int = 0) -> Key[Array, " seeds"]:
    """Return one key for each seed."""
    numbers = np.arange(first_seed, first_seed + seeds, dtype=np.uint32)
    return jax.vmap(jax.random.key)(numbers)


def init(trainer: Trainer, key: PRNGKeyArray) -> TrainState:
    """Return the state of one seed before its first step."""
    agent_key, world_key, memory_key, train_key = jax.random.split(key, 4)
    world_state, step = trainer.world.init(world_key)
    auxiliary, memory = trainer.intrinsic.init(memory_key, step)
    learner = begin_learner(trainer.agent.init(agent_key), auxiliary, trainer.optimizers)
    actor = begin_actor(trainer.agent, trainer.world, world_state, step, memory)
    actor = trainer.parallel.constrain_actor(actor)
    return TrainState(learner, actor, train_key, jnp.zeros((), jnp.int32))


def iterate(trainer: Trainer, state: TrainState) -> tuple[TrainState, Metrics]:
    """Play and learn once: rollouts, then updates."""
    key, rollout_key = jax.random.split(state.key)
    frames = state.iteration.astype(jnp.float32) * trainer.settings.iteration_frames
    learner = state.learner._replace(fixed=trainer.agent.schedule(state.learner.fixed, frames))
    actor, trajectories, events = play(trainer, learner, state.actor, rollout_key)
    learner, update_metrics = learn(trainer, learner, trajectories)
    metrics = {
        **update_metrics,
        **_episode_metrics(events, trainer.world.environments),
        **trainer.intrinsic.metrics(actor.memory),
        **trainer.world.report(actor.world),
    }
    actor = trainer.parallel.constrain_actor(actor)
    return TrainState(learner, actor, key, state.iteration + 1), metrics


def play(
    trainer: Trainer, learner: LearnerState, actor: ActorState, key: PRNGKeyArray
) -> tuple[ActorState, Trajectory, Events]:
    """Play the rollouts of an iteration; trajectories get a leading axis of rollouts.

    Args:
        trainer: the parts of the run.
        learner: whose policy acts.
        actor: before the first rollout.
        key: draws actions, and what the intrinsic method draws.
    """

    def play_once(
        actor: ActorState, key: PRNGKeyArray
    ) -> tuple[ActorState, tuple[Trajectory, Events]]:
        actor = actor._replace(world=trainer.world.refresh(actor.world))
        actor, trajectory, events = rollout(
            trainer.agent,
            trainer.world,
            trainer.intrinsic,
            learner.agent,
            learner.intrinsic,
            actor,
            key,
            trainer.settings.unroll,
        )
        return actor, (trajectory, events)

    keys = jax.random.split(key, trainer.settings.rollouts)
    actor, (trajectories, events) = jax.lax.scan(play_once, actor, keys)
    return actor, trajectories, events


def learn(
    trainer: Trainer, learner: LearnerState, trajectories: Trajectory
) -> tuple[LearnerState, Metrics]:
    """Learn from every sequence once, batch by batch, oldest first."""

    def learn_each(
        learner: LearnerState, batches: Trajectory, numbers: Numbers | None
    ) -> tuple[LearnerState, Metrics]:
        here = _trainer_with(trainer, numbers)  # a sharded function may refer to no traced array

        def learn_once(learner: LearnerState, batch: Trajectory) -> tuple[LearnerState, Metrics]:
            return update(
                here.agent,
                here.intrinsic,
                here.optimizers,
                here.settings,
                learner,
                batch,
                here.parallel.mean,
            )

        return jax.lax.scan(learn_once, learner, batches)

    batches = split_batches(trajectories, trainer.settings.updates)
    shared = trainer.parallel.shard_learner(learn_each)
    learner, metrics = shared(learner, batches, trainer.numbers)
    loss = metrics.pop("loss")
    means = {name: values.mean(0) for name, values in metrics.items()}
    return learner, {**means, "first_bad_update": _first_bad(loss)}


def split_batches(trajectories: Trajectory, batches: int) -> Trajectory:
    """Regroup `[rollouts, T, worlds]` into `[batches, T, sequences]`, oldest sequences first."""

    def regroup(leaf: Array) -> Array:  # [rollouts, X, worlds, ...]
        sequences = jnp.moveaxis(leaf, 1, 2).reshape(batches, -1, leaf.shape[1], *leaf.shape[3:])
        return jnp.moveaxis(sequences, 2, 1)

    return jax.tree.map(regroup, trajectories)


def _chunk(iterations: int, trainer: Trainer, state: TrainState) -> tuple[TrainState, Metrics]:
    def iterate_once(state: TrainState, _: None) -> tuple[TrainState, Metrics]:
        return iterate(trainer, state)

    return jax.lax.scan(iterate_once, state, length=iterations)


def _map_seeds[X, Y](function: Callable[[X], Y], seeds: int, at_once: int, tree: X) -> Y:
    """Apply `function` to each agent of arrays `[seeds, ...]`, `at_once` of them side by side."""
    if seeds == 1:
        one = function(jax.tree.map(lambda leaf: leaf[0], tree))
        return jax.tree.map(lambda leaf: leaf[None], one)
    return jax.lax.map(function, tree, batch_size=at_once if at_once > 1 else None)


def _first_bad(loss: Float[Array, " updates"]) -> Float[Array, ""]:
    """Return the index of the first update whose loss is not finite, NaN if all are."""
    bad = ~jnp.isfinite(loss)
    return jnp.where(bad.any(), jnp.argmax(bad), jnp.nan)


def _episode_metrics(events: Events, environments: tuple[str, ...]) -> Metrics:
    """Return means over the episodes that ended, of all worlds and of each; NaN if none did."""
    metrics = {}
    for index, name in [(None, ""), *((i, f"/{e}") for i, e in enumerate(environments))]:
        mask = events.ended if index is None else events.ended & (events.environment == index)
        metrics[f"success{name}"] = _masked_mean(events.episode_success, mask)
        metrics[f"extrinsic_return{name}"] = _masked_mean(events.episode_return, mask)
        metrics[f"episode_length{name}"] = _masked_mean(events.episode_length, mask)
        metrics[f"interactions{name}"] = _masked_mean(events.episode_interactions, mask)
    return metrics


def _masked_mean(values: Array, mask: Bool[Array, "..."]) -> Float[Array, ""]:
    return jnp.where(mask, values, 0).sum() / mask.sum()
