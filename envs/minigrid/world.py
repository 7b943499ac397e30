"""A batch of gridworlds: rules, automatic resets with levels from the pool, and views."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from envs.barrier import materialize
from envs.minigrid import cells, rules, views
from envs.minigrid.generators import Generator
from envs.minigrid.level import Level
from envs.minigrid.observations import Observer, observer_of
from envs.minigrid.pool import Pool, make_pool, pool_of, refill, replayed_shares, take
from envs.minigrid.rules import Outcome, State
from envs.types import Step, World

# The pool is sized for this many steps between calls of `refresh`. With more steps, some levels may
# be replayed; `report` returns their share.
STEPS_BETWEEN_REFRESHES = 100
SPARE_LEVELS = 8  # per environment: staggered starts are even only up to a few worlds
GOLDEN_RATIO_BITS = np.uint32(0x9E3779B9)  # 2^32 / golden ratio
VIEW_SHAPE = (views.VIEW_SIZE, views.VIEW_SIZE, 3)
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
    staggered: bool = False,
    levels_per_world: int | None = None,
    **view_options: Any,
) -> World[Worlds]:
    """Return a batch of worlds that cycle through `generators`, one environment per episode.

    Worlds stepped together, whose episodes end only by time limits, never drift apart, unlike the
    free-running actors of the published code. `staggered` starts them apart.

    Args:
        generators: the environments, in playing order.
        num_worlds: size of the batch.
        explore: play without a task (paper, section 3.2): only the time limit and lava end an
            episode, success does not.
        staggered: spread the starts evenly over one cycle through the environments, with shortened
            first episodes (T in rewards 1 - 0.9 t / T is then shorter, too). Otherwise all worlds
            begin a full episode of the first environment.
        levels_per_world: pool size per world and environment (None: as many as the worlds may need
            before the next refresh).
        **view_options: as of `make_world`.
    """
    generators = tuple(generators)
    observer = observer_of(generators, **view_options)
    time_limits = tuple(generator.max_steps for generator in generators)
    names = tuple(generator.name for generator in generators)
    capacity = _levels_waiting(generators, num_worlds, explore, staggered)
    if levels_per_world is not None:
        capacity = num_worlds * levels_per_world
    fresh = max(num_worlds // 8, 4)

    def init(key: PRNGKeyArray) -> tuple[Worlds, Step]:
        pool_key, key = jax.random.split(key)
        pool = make_pool(pool_key, generators, capacity, fresh)
        environment = jnp.zeros(num_worlds, jnp.int32)
        if staggered:
            key, start_key = jax.random.split(key)
            environment, time_limit = staggered_starts(start_key, time_limits, num_worlds)
        pool, levels = take(pool, environment, jnp.ones(num_worlds, bool))
        if staggered:
            levels = levels._replace(max_steps=jnp.minimum(levels.max_steps, time_limit))
        states = jax.vmap(rules.start)(levels)
        return Worlds(states, environment, pool, key), _first_step(states, environment, observer)

    def refresh(worlds: Worlds) -> Worlds:
        key, pool_key = jax.random.split(worlds.key)
        return worlds._replace(pool=refill(worlds.pool, pool_key, generators, fresh), key=key)

    return World[Worlds](
        init=init,
        step=partial(_step, explore=explore, observer=observer),
        step_with_final=partial(_step, explore=explore, observer=observer, final=True),
        refresh=refresh,
        report=partial(report, names),
        num_worlds=num_worlds,
        num_actions=len(rules.ACTIONS),
        view_shape=VIEW_SHAPE,
        environments=names,
        max_steps=max(time_limits),
        other_view_shape=observer.shape if observer else None,
    )


def play_levels(num_worlds: int, max_steps: int, observer: Observer | None = None) -> World[Worlds]:
    """Return worlds whose `init` takes levels `[N]` instead of a random key.

    Each world begins with its own level, and success ends an episode. Later episodes take the
    levels in turn, from the first on. One compiled program plays every environment.

    Args:
        num_worlds: size of the batch.
        max_steps: upper bound of the levels' time limits.
        observer: shows the worlds to the policies (None: they see the 7x7 view).
    """

    def init(levels: Level) -> tuple[Worlds, Step]:
        environment = jnp.zeros(num_worlds, jnp.int32)
        states = jax.vmap(rules.start)(levels)
        worlds = Worlds(states, environment, pool_of(levels), jax.random.key(0))
        return worlds, _first_step(states, environment, observer)

    return World[Worlds](
        init=init,
        step=partial(_step, explore=False, observer=observer),
        num_worlds=num_worlds,
        num_actions=len(rules.ACTIONS),
        view_shape=VIEW_SHAPE,
        environments=("given levels",),
        max_steps=max_steps,
        other_view_shape=observer.shape if observer else None,
    )


def first_levels(generator: Generator, key: PRNGKeyArray, num_worlds: int) -> Level:
    """Return the first levels `[num_worlds]` of worlds of one environment."""
    world = gridworld([generator], num_worlds, explore=False, levels_per_world=1)
    return world.init(key)[0].states.level


def staggered_starts(
    key: PRNGKeyArray, time_limits: Sequence[int], num_worlds: int
) -> tuple[Int[Array, " N"], Int[Array, " N"]]:
    """Return starts spread evenly over one cycle through the environments.

    World i starts at frac(u + i / golden ratio) of the cycle, an additive recurrence with a random
    u: any run of neighbouring worlds is spread evenly, too.

    Args:
        key: draws u.
        time_limits: the environments' time limits in steps, in playing order.
        num_worlds: number of worlds.

    Returns:
        The environment of each world, and the time limit of its first episode, in steps.
    """
    ends = np.cumsum(time_limits)
    u = jax.random.bits(key, (), jnp.uint32)
    fractions = u + jnp.arange(num_worlds, dtype=jnp.uint32) * GOLDEN_RATIO_BITS  # unit: 2^-32
    moment = (fractions.astype(jnp.float32) * (ends[-1] / 2**32)).astype(jnp.int32)
    moment = jnp.minimum(moment, ends[-1] - 1)
    environment = jnp.searchsorted(jnp.asarray(ends), moment, side="right").astype(jnp.int32)
    return environment, jnp.asarray(ends, jnp.int32)[environment] - moment


def _levels_waiting(
    generators: Sequence[Generator], num_worlds: int, explore: bool, staggered: bool
) -> int:
    """Return the levels per environment that all worlds may need before the next refresh.

    Time limits bound the number of episodes, unless success or lava ends them early; then the
    result is a guess.
    """
    if not explore or any(generator.deadly for generator in generators):
        return num_worlds * LEVELS_FOR_SHORT_EPISODES
    time_limits = [generator.max_steps for generator in generators]
    if staggered:  # N / cycle worlds begin each environment in every step; the start takes more
        window = max(*time_limits, STEPS_BETWEEN_REFRESHES)
        return SPARE_LEVELS + -(-num_worlds * window // sum(time_limits))
    return num_worlds * (1 + -(-STEPS_BETWEEN_REFRESHES // min(time_limits)))


def report(names: Sequence[str], worlds: Worlds) -> dict[str, Float[Array, ""]]:
    """Return the share of episodes that replayed an old level, overall and per environment."""
    overall, by_environment = replayed_shares(worlds.pool)
    named = {f"levels_replayed/{name}": by_environment[i] for i, name in enumerate(names)}
    return {"levels_replayed": overall, **named}


def _step(
    worlds: Worlds,
    actions: Int[Array, " N"],
    *,
    explore: bool,
    observer: Observer | None,
    final: bool = False,
) -> tuple[Worlds, Step]:
    """Take one action in each world, and start the next episode where one ended."""
    states, outcome = jax.vmap(rules.step)(worlds.states, actions)
    terminated, truncated = rules.episode_ends(outcome, explore=explore)
    ended = terminated | truncated
    next_worlds = restart(worlds._replace(states=states), ended)
    environment = worlds.environment
    step = _observe(
        next_worlds.states, outcome, terminated, truncated, states, environment, observer
    )
    if final:
        last = look_at_ends(states, ended, observer)
        now = step.view, step.other_view
        view, other = jax.tree.map(partial(_where, ended), (last.view, last.other_view), now)
        step = step._replace(final_view=view, other_final_view=other)
    return next_worlds, step


class Seen(NamedTuple):
    """What `N` agents see."""

    view: UInt8[Array, "N 7 7 3"]
    other_view: UInt8[Array, "N rows columns 3"] | None  # what an observer shows them instead
    panorama: UInt8[Array, "N 4 7 7 3"] | None  # on request


def look(states: State, observer: Observer | None = None, *, panorama: bool = False) -> Seen:
    """Return the agents' views, and on request their panoramas."""
    seen = views.look_around_batch(states)
    view = jnp.moveaxis(views.egocentric(states, seen), -1, 0)
    around = cells.encode(jnp.moveaxis(seen, -1, 0)) if panorama else None
    return Seen(view, observer.see(states) if observer else None, around)


def look_at_ends(states: State, ended: Bool[Array, " N"], observer: Observer | None) -> Seen:
    """Return what agents see when episodes end, before resets: zeros if none has ended."""
    see = partial(look, states, observer=observer)
    nothing = jax.tree.map(jnp.zeros_like, jax.eval_shape(see))
    seen: Seen = jax.lax.cond(ended.any(), see, lambda: nothing)
    return seen


def restart(worlds: Worlds, ended: Bool[Array, " N"]) -> Worlds:
    """Start the next episode, in the next environment, in every world whose episode ended."""

    def start_episodes(worlds: Worlds) -> Worlds:
        environment = (worlds.environment + ended.astype(jnp.int32)) % len(worlds.pool.made)
        pool, levels = take(worlds.pool, environment, ended)
        fresh = jax.vmap(rules.start)(levels)
        states = jax.tree.map(lambda new, old: _where(ended, new, old), fresh, worlds.states)
        return worlds._replace(states=states, environment=environment, pool=pool)

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
    observer: Observer | None,
) -> Step:
    """Return the step: views of `states` (after resets), and results of the action in `played`."""
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
        other_view=observer.see(states) if observer else None,
    )
    return materialize(step)


def _first_step(states: State, environment: Int[Array, " N"], observer: Observer | None) -> Step:
    nothing = jnp.zeros_like(states.succeeded)
    outcome = jax.vmap(rules.no_outcome)(states)
    return _observe(states, outcome, nothing, nothing, states, environment, observer)
