"""Training of any number of agents at once, as a compiled program.

A chunk is a scan over iterations; the host calls it again and again.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Key, PRNGKeyArray

from cbet_jax import sharding
from cbet_jax.agent import Agent
from cbet_jax.config import TrainSettings
from cbet_jax.settings.swept import differing
from cbet_jax.sharding import SEEDS, compiler_options
from cbet_jax.train import Trainer, TrainState, init, iterate, make_trainer
from cbet_jax.types import Metrics, SameType, unchanged
from envs.types import World


class Program(NamedTuple):
    """A compiled training run. States and metrics have a leading axis of seeds.

    A program of several settings has all seeds of the first settings, then those of the next.
    """

    init: jax.stages.Wrapped  # keys [seeds] -> TrainState
    #: TrainState -> TrainState, Metrics [iterations, seeds]: plays and learns a chunk, and donates
    #: its input state
    advance: jax.stages.Wrapped
    iterations_per_chunk: int
    frames_per_iteration: int  # frames of each seed
    to_devices: SameType = unchanged  # moves a state read from disk to where `advance` expects it


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

    Args:
        settings: one run's, or those of several runs that train side by side and differ in real
            numbers only (rates, weights, probabilities above 0).
        world: the worlds of one seed.
        seeds: number of agents for each of the settings.
        iterations_per_chunk: iterations in one call of `advance`.
        seeds_at_once: seeds computed side by side (None: all on an accelerator; 1 on a CPU,
            whose cache does not hold more).
        agent: acts and learns (None: one network, as the settings say).
        mesh: the devices that seeds and worlds are laid out over (None: one device).

    Raises:
        SettingsError: the method is unknown, or does not work with these settings, or the
            settings differ in more than numbers.
    """
    runs = (settings,) if isinstance(settings, TrainSettings) else settings
    several = tuple(each.for_episodes(world.max_steps) for each in runs)
    agents = len(several) * seeds
    in_row = agents // mesh.shape[SEEDS] if mesh else agents
    at_once = seeds_at_once or (1 if jax.default_backend() == "cpu" else in_row)
    trainer = make_trainer(several[0], world, agent, mesh)
    of_each_agent = jax.tree.map(lambda column: np.repeat(column, seeds), differing(several))

    def begin(keys: Key[Array, " seeds"]) -> TrainState:
        def begin_one(agent: tuple[TrainSettings, PRNGKeyArray]) -> TrainState:
            numbers, key = agent
            return init(trainer.with_numbers(numbers), key)

        each = partial(_map_agents, begin_one, in_row, at_once)
        return sharding.over_seeds(mesh, each)((of_each_agent, keys))

    def advance(state: TrainState) -> tuple[TrainState, Metrics]:
        def advance_one(agent: tuple[TrainSettings, TrainState]) -> tuple[TrainState, Metrics]:
            numbers, state = agent
            return _chunk(iterations_per_chunk, trainer.with_numbers(numbers), state)

        each = partial(_update_agents, advance_one, in_row, at_once)
        state, metrics = sharding.over_seeds(mesh, each)((of_each_agent, state))
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
        to_devices=lambda state: jax.tree.map(sharding.to_devices, state, placed),
    )


def seed_keys(seeds: int, first_seed: int = 0) -> Key[Array, " seeds"]:
    """Return one key for each seed."""
    return jax.vmap(jax.random.key)(np.arange(first_seed, first_seed + seeds, dtype=np.uint32))


def _chunk(iterations: int, trainer: Trainer, state: TrainState) -> tuple[TrainState, Metrics]:
    return jax.lax.scan(lambda state, _: iterate(trainer, state), state, length=iterations)


def _map_agents[X, Y](function: Callable[[X], Y], agents: int, at_once: int, tree: X) -> Y:
    """Apply `function` to each agent of arrays `[agents, ...]`, `at_once` of them side by side."""
    if agents == 1:
        one = function(jax.tree.map(lambda leaf: leaf[0], tree))
        return jax.tree.map(lambda leaf: jnp.expand_dims(leaf, 0), one)
    return jax.lax.map(function, tree, batch_size=at_once if at_once > 1 else None)


def _update_agents[N, X, Y](
    function: Callable[[tuple[N, X]], tuple[X, Y]], agents: int, at_once: int, tree: tuple[N, X]
) -> tuple[X, Y]:
    """Map agents' numbers and states as `_map_agents` does, and update the states in place.

    Count tables, most of a state, are then held once, plus those of the one agent that learns.
    """
    if agents == 1 or at_once > 1:
        return _map_agents(function, agents, at_once, tree)

    def update(states: X, agent: tuple[Array, N]) -> tuple[X, Y]:
        index, numbers = agent
        one = jax.tree.map(lambda all_: jax.lax.dynamic_index_in_dim(all_, index, 0, False), states)
        one, found = function((numbers, one))
        put = partial(jax.lax.dynamic_update_index_in_dim, index=index, axis=0)
        return jax.tree.map(put, states, one), found

    numbers, states = tree
    return jax.lax.scan(update, states, (jnp.arange(agents), numbers))
