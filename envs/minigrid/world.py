"""Many gridworlds side by side: rules, automatic resets from the pool, and what is seen."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from envs.minigrid import rules, views
from envs.minigrid.generators import Generator
from envs.minigrid.pool import Pool, make_pool, shares_replayed, take, top_up
from envs.minigrid.rules import Outcome, State
from envs.types import Step, World

STEPS_BETWEEN_REFRESHES = 100  # that the pool is made for; should there be more, levels may
# be played twice, which `report` tells
LEVELS_IF_EPISODES_MAY_BE_SHORT = 8


class Worlds(NamedTuple):
    """`N` gridworlds and the levels that wait for them."""

    states: State  # arrays [N, ...]
    environment: Int[Array, " N"]  # which environment each world plays
    pool: Pool
    key: PRNGKeyArray  # for fresh levels


def gridworld(
    generators: Sequence[Generator],
    num_worlds: int,
    *,
    explore: bool,
    levels_per_world: int | None = None,
) -> World[Worlds]:
    """Returns `num_worlds` worlds that walk through `generators`, one environment an episode.

    Every world starts with the first environment, as the published code's actors do.

    Args:
        generators: the environments, in the order in which they are played.
        num_worlds: how many worlds are played side by side.
        explore: no task (paper, section 3.2): success does not end an episode, only the time
            limit and lava do.
        levels_per_world: how many levels of each environment wait for each world (default: as
            many as it may need before the next refresh).
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
        return next_worlds, _see(
            next_worlds.states, outcome, terminated, truncated, states, worlds.environment
        )

    def refresh(worlds: Worlds) -> Worlds:
        key, pool_key = jax.random.split(worlds.key)
        return worlds._replace(pool=top_up(worlds.pool, pool_key, generators, fresh), key=key)

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
    """Returns how many levels a world may need of one environment before the next refresh.

    The time limits say how many episodes can begin; where success or lava ends them, it is a
    guess.
    """
    if not explore or any(generator.deadly for generator in generators):
        return LEVELS_IF_EPISODES_MAY_BE_SHORT
    shortest = min(generator.max_steps for generator in generators)
    return 1 + -(-STEPS_BETWEEN_REFRESHES // shortest)


def report(names: Sequence[str], worlds: Worlds) -> dict[str, Float[Array, ""]]:
    """Returns the share of levels taken that were no fresh ones: of all, and of each environment.

    It is 1 where an environment's generator has not made a single level.
    """
    of_all, of_each = shares_replayed(worlds.pool)
    each = {f"levels_replayed/{name}": of_each[index] for index, name in enumerate(names)}
    return {"levels_replayed": of_all, **each}


def _reset(worlds: Worlds, ended: Bool[Array, " N"], generators: Sequence[Generator]) -> Worlds:
    """Starts the next episode, in the next environment, in every world whose episode ended."""

    def start_anew(worlds: Worlds) -> Worlds:
        environment = (worlds.environment + ended.astype(jnp.int32)) % len(generators)
        pool, levels = take(worlds.pool, environment, ended)
        fresh = jax.vmap(rules.start)(levels)
        states = jax.tree.map(lambda new, old: _where(ended, new, old), fresh, worlds.states)
        return worlds._replace(states=states, environment=environment, pool=pool)

    if jax.default_backend() != "cpu":
        return start_anew(worlds)  # which costs less than telling the host which way to go
    return jax.lax.cond(ended.any(), start_anew, lambda worlds: worlds, worlds)


def _where(mask: Bool[Array, " N"], new: Array, old: Array) -> Array:
    return jnp.where(mask.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def _see(
    states: State,
    outcome: Outcome,
    terminated: Bool[Array, " N"],
    truncated: Bool[Array, " N"],
    played: State,
    environment: Int[Array, " N"],
) -> Step:
    """Returns what the agents see now, and what the action brought in the state `played`."""
    apart = jax.lax.optimization_barrier  # or every use of a view would look around again
    seen = views.look_around_each(states)
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
    return apart(step)


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
    return _see(states, outcome, nothing, nothing, states, environment)
