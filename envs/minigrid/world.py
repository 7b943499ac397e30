"""A batch of gridworlds: rules, automatic resets with levels from the pool, and views."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from envs.minigrid import rules, views
from envs.minigrid.compute_once import compute_once
from envs.minigrid.generators import Generator
from envs.minigrid.pool import Pool, make_pool, refill, replayed_shares, take
from envs.minigrid.rules import Outcome, State
from envs.types import Step, World

# The pool is sized for this many steps between two calls of `refresh`. With more steps, some
# levels may be played twice; `report` returns their share.
STEPS_BETWEEN_REFRESHES = 100
LEVELS_FOR_SHORT_EPISODES = 8  # per world and environment, where success or lava ends episodes


class Worlds(NamedTuple):
    """`N` gridworlds and the pool of their next levels."""

    states: State  # arrays [N, ...]
    environment: Int[Array, " N"]  # index of the environment that each world plays
    pool: Pool
    key: PRNGKeyArray  # for fresh levels


def gridworld(
    generators: Sequence[Generator],
    num_worlds: int,
    *,
    explore: bool,
    levels_per_world: int | None = None,
) -> World[Worlds]:
    """Return a batch of worlds that cycle through `generators`, one environment per episode.

    Every world starts with the first environment, like the actors of the published code.

    Args:
        generators: the environments, in the order in which they are played.
        num_worlds: size of the batch.
        explore: play without a task (paper, section 3.2): only the time limit and lava end an
            episode, success does not.
        levels_per_world: levels of each environment that the pool holds for each world
            (default: as many as a world may need before the next refresh).
    """
    generators = tuple(generators)
    names = tuple(generator.name for generator in generators)
    capacity = num_worlds * (levels_per_world or _levels_waiting(generators, explore))
    fresh = max(num_worlds // 8, 4)

    def init(key: PRNGKeyArray) -> tuple[Worlds, Step]:
        pool_key, key = jax.random.split(key)
        pool = make_pool(pool_key, generators, capacity, fresh)
        environment = jnp.zeros(num_worlds, jnp.int32)
        pool, levels = take(pool, environment, jnp.ones(num_worlds, bool))
        states = jax.vmap(rules.start)(levels)
        return Worlds(states, environment, pool, key), _first_step(states, environment)

    def step(worlds: Worlds, actions: Int[Array, " N"]) -> tuple[Worlds, Step]:
        states, outcome = jax.vmap(rules.step)(worlds.states, actions)
        terminated = outcome.died if explore else outcome.died | outcome.success
        truncated = outcome.timed_out & ~terminated
        next_worlds = _reset(worlds._replace(states=states), terminated | truncated, generators)
        return next_worlds, _observe(
            next_worlds.states, outcome, terminated, truncated, states, worlds.environment
        )

    def refresh(worlds: Worlds) -> Worlds:
        key, pool_key = jax.random.split(worlds.key)
        return worlds._replace(pool=refill(worlds.pool, pool_key, generators, fresh), key=key)

    return World[Worlds](
        init=init,
        step=step,
        refresh=refresh,
        report=partial(report, names),
        num_worlds=num_worlds,
        num_actions=len(rules.ACTIONS),
        view_shape=(views.VIEW_SIZE, views.VIEW_SIZE, 3),
        environments=names,
        max_steps=max(generator.max_steps for generator in generators),
    )


def _levels_waiting(generators: Sequence[Generator], explore: bool) -> int:
    """Return how many levels of one environment a world may need before the next refresh.

    The time limits bound the number of episodes, unless success or lava can end an episode
    early; then the number is a guess.
    """
    if not explore or any(generator.deadly for generator in generators):
        return LEVELS_FOR_SHORT_EPISODES
    shortest = min(generator.max_steps for generator in generators)
    return 1 + -(-STEPS_BETWEEN_REFRESHES // shortest)


def report(names: Sequence[str], worlds: Worlds) -> dict[str, Float[Array, ""]]:
    """Return the share of episodes that replayed an old level, overall and per environment.

    The share is 1 if the generator of an environment has not finished a single level.
    """
    overall, by_environment = replayed_shares(worlds.pool)
    named = {f"levels_replayed/{name}": by_environment[i] for i, name in enumerate(names)}
    return {"levels_replayed": overall, **named}


def _reset(worlds: Worlds, ended: Bool[Array, " N"], generators: Sequence[Generator]) -> Worlds:
    """Start the next episode, in the next environment, in every world whose episode ended."""

    def start_episodes(worlds: Worlds) -> Worlds:
        environment = (worlds.environment + ended.astype(jnp.int32)) % len(generators)
        pool, levels = take(worlds.pool, environment, ended)
        fresh = jax.vmap(rules.start)(levels)
        states = jax.tree.map(lambda new, old: _where(ended, new, old), fresh, worlds.states)
        return worlds._replace(states=states, environment=environment, pool=pool)

    if jax.default_backend() != "cpu":
        return start_episodes(worlds)  # cheaper than a branch, which waits for the host
    return jax.lax.cond(ended.any(), start_episodes, lambda worlds: worlds, worlds)


def _where(mask: Bool[Array, " N"], new: Array, old: Array) -> Array:
    return jnp.where(mask.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def _observe(
    states: State,
    outcome: Outcome,
    terminated: Bool[Array, " N"],
    truncated: Bool[Array, " N"],
    played: State,
    environment: Int[Array, " N"],
) -> Step:
    """Return the step: what the agents see in `states`, and the outcome of the last action.

    Args:
        states: the states after automatic resets.
        outcome: of the last action.
        terminated: which episodes it ended in a terminal state.
        truncated: which episodes it ended at the time limit.
        played: the states after the action, before automatic resets.
        environment: index of the environment in which the action was taken.
    """
    seen = views.look_around_batch(states)
    step = Step(
        view=jnp.moveaxis(views.egocentric(states, seen), -1, 0),
        panorama=jnp.moveaxis(views.panorama_code(seen), -1, 0),
        reward=outcome.reward,
        success=outcome.success,
        terminated=terminated,
        truncated=truncated,
        length=played.step_count,
        environment=environment,
        interaction=outcome.interaction,
    )
    return compute_once(step)


def _first_step(states: State, environment: Int[Array, " N"]) -> Step:
    nothing = jnp.zeros_like(states.succeeded)
    outcome = Outcome(
        reward=jnp.zeros(nothing.shape),
        success=nothing,
        died=nothing,
        timed_out=nothing,
        interacted=nothing,
        interaction=jnp.zeros_like(states.changes),
    )
    return _observe(states, outcome, nothing, nothing, states, environment)
