"""Environments of other libraries as a `World`: navix's, and those with gymnax's interface.

They keep their rules, rewards and ends. Actions are discrete; an observation is one array, which
becomes bytes (`envs.observation_bytes`). Counts read the same bytes as `panorama`: a state is an
observation, a change is the difference of two that follow each other.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from envs.observation_bytes import BYTE, Bounds, make_view
from envs.types import Step, World

UNBOUNDED = 1e6  # a bound beyond this is none: spaces write the largest float in its place

#: of reward, terminated, and info; all of one environment
type Success = Callable[[Any, Any, Any], Bool[Array, ""]]


class Played(NamedTuple):
    """What an action brought, in one environment."""

    observation: Array
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]
    success: Bool[Array, ""]


class Adapted(NamedTuple):
    """The state of `N` environments."""

    states: Any  # of the environments, arrays [N, ...]
    length: Int[Array, " N"]  # steps played in the current episode
    key: PRNGKeyArray


class _Environment(NamedTuple):
    """One environment: what the adapters of all libraries have in common."""

    name: str
    num_actions: int
    max_steps: int
    reset: Callable[[PRNGKeyArray], tuple[Any, Array]]  # key -> state, observation
    #: key, state, action, length of the episode with this action
    step: Callable[[PRNGKeyArray, Any, Array, Array], tuple[Any, Played]]
    #: which of the steps ended an episode without beginning the next; None: the environment does
    needs_reset: Callable[[Played], Bool[Array, " N"]] | None
    says_success: bool = True  # no: nothing tells whether an action fulfilled the task


def from_gymnax(
    env: Any,
    params: Any,
    num_worlds: int,
    *,
    bounds: Bounds | None = None,
    levels: int = BYTE,
    max_steps: int | None = None,
    success: Success | None = None,
    name: str | None = None,
) -> World[Adapted]:
    """Return worlds that play an environment with gymnax's interface.

    It has `reset(key, params)`, `step(key, state, action, params)`, which resets by itself, and
    `action_space(params)`. A step returns `terminated` and `truncated`, as in gymnax 1.0, or one
    `done`, as before; `done` is a truncation where `info["truncated"]` says so or, without that, at
    the time limit.

    Args:
        env: the environment.
        params: of the environment.
        num_worlds: size of the batch.
        bounds: of the numbers of an observation (None: those of `observation_space(params)`, if
            there is one; bytes need none).
        levels: that counts tell apart in a real number, 2 to 256.
        max_steps: time limit, beside `params.max_steps_in_episode`, which the environment keeps
            itself: the smaller one holds.
        success: says whether an action fulfilled the task (None: `info["success"]`; without it,
            success is not measured).
        name: in metrics and tables (None: the environment's own, or that of its class).

    Raises:
        ValueError: the environment cannot be adapted; one line says why.
    """
    limits = [max_steps, getattr(params, "max_steps_in_episode", None)]
    limit = min((int(limit) for limit in limits if limit is not None), default=None)
    if limit is None:
        raise ValueError("its params have no max_steps_in_episode: give max_steps")
    actions = getattr(env.action_space(params), "n", None)
    if actions is None:
        raise ValueError("its actions must be discrete: action_space(params) has no n")
    if bounds is None and (space := getattr(env, "observation_space", None)) is not None:
        bounds = _space_bounds(space(params))

    def reset(key: PRNGKeyArray) -> tuple[Any, Array]:
        observation, state = env.reset(key, params)
        return state, observation

    def step(key: PRNGKeyArray, state: Any, action: Array, length: Array) -> tuple[Any, Played]:
        observation, state, reward, *ends, info = env.step(key, state, action, params)
        at_limit = length >= limit
        terminated, truncated = _ends(ends, info, at_limit)
        if max_steps is not None:  # the environment need not keep it
            truncated = truncated | (at_limit & ~terminated)
        if success is not None:
            reached = success(reward, terminated, info)
        else:
            reached = info.get("success", False)
        return state, _played(observation, reward, terminated, truncated, reached)

    return _world(
        _Environment(
            name=name or str(getattr(env, "name", type(env).__name__)),
            num_actions=int(actions),
            max_steps=limit,
            reset=reset,
            step=step,
            needs_reset=None if max_steps is None else lambda played: played.truncated,
            says_success=success is not None or _tells_success(env, params),
        ),
        num_worlds,
        bounds,
        levels,
    )


def _ends(
    ends: Sequence[Any], info: Mapping[str, Any], at_limit: Bool[Array, ""]
) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
    """Return whether an episode was terminated, and whether it was truncated; never both.

    Args:
        ends: `terminated` and `truncated`, or one `done`.
        info: of the step; may say `truncated`, beside one `done`.
        at_limit: whether the time limit was reached.
    """
    if len(ends) == 2:
        terminated, truncated = (jnp.asarray(end, bool) for end in ends)
        return terminated, truncated & ~terminated
    (done,) = ends
    truncated = done & jnp.asarray(info.get("truncated", at_limit), bool)
    return done & ~truncated, truncated


def _tells_success(env: Any, params: Any) -> bool:
    """Return whether a step's `info` has `success`; nothing is played."""
    told: set[str] = set()

    def look() -> None:
        key, action = jax.random.key(0), jnp.zeros((), jnp.int32)
        told.update(env.step(key, env.reset(key, params)[1], action, params)[-1])

    jax.eval_shape(look)
    return "success" in told


def from_navix(
    env: Any,
    num_worlds: int,
    *,
    bounds: Bounds | None = None,
    levels: int = BYTE,
    success: Success | None = None,
    name: str | None = None,
) -> World[Adapted]:
    """Return worlds that play an environment of navix by navix's own rules and observations.

    `--envs Navix-FourRooms-v0` does, too.

    Args:
        env: the environment, as `navix.make` returns it.
        num_worlds: size of the batch.
        bounds: of the numbers of an observation (None: those of `observation_space`).
        levels: that counts tell apart in a real number, 2 to 256.
        success: says whether an action fulfilled the task (None: it ended the episode, and was
            rewarded).
        name: in metrics and tables (None: that of the environment's class).

    Raises:
        ValueError: the environment cannot be adapted; one line says why.
    """
    env = env.replace(disable_autoreset=True)  # it would reset one step later than a `World` does

    def reset(key: PRNGKeyArray) -> tuple[Any, Array]:
        timestep = env.reset(key)
        return timestep, timestep.observation

    def step(key: PRNGKeyArray, timestep: Any, action: Array, _: Array) -> tuple[Any, Played]:
        del key  # the state has one
        after = env.step(timestep, action)
        terminated, reward = after.is_termination(), after.reward
        reached = success(reward, terminated, after.info) if success else terminated & (reward > 0)
        return after, _played(after.observation, reward, terminated, after.is_truncation(), reached)

    return _world(
        _Environment(
            name=name or type(env).__name__,
            num_actions=len(env.action_set),
            max_steps=int(env.max_steps),
            reset=reset,
            step=step,
            needs_reset=lambda played: played.terminated | played.truncated,
        ),
        num_worlds,
        _space_bounds(env.observation_space) if bounds is None else bounds,
        levels,
    )


def _world(
    env: _Environment, num_worlds: int, bounds: Bounds | None, levels: int
) -> World[Adapted]:
    """Return the worlds of an environment.

    Args:
        env: the environment.
        num_worlds: size of the batch.
        bounds: of the numbers of an observation (None: unknown).
        levels: that counts tell apart in a real number.
    """
    seen = jax.eval_shape(env.reset, jax.random.key(0))[1]
    bytes_of, view_shape = make_view(seen, bounds, levels)

    def init(key: PRNGKeyArray) -> tuple[Adapted, Step]:
        key, reset_key = jax.random.split(key)
        states, observation = jax.vmap(env.reset)(jax.random.split(reset_key, num_worlds))
        nothing = jnp.zeros(num_worlds, jnp.int32)
        never = jnp.zeros(num_worlds, bool)
        played = Played(observation, jnp.zeros(num_worlds), never, never, never)
        return Adapted(states, nothing, key), see(observation, played, nothing)

    def step(adapted: Adapted, action: Int[Array, " N"]) -> tuple[Adapted, Step]:
        key, step_key, reset_key = jax.random.split(adapted.key, 3)
        length = adapted.length + 1
        keys = jax.random.split(step_key, num_worlds)
        states, played = jax.vmap(env.step)(keys, adapted.states, action, length)
        observation = played.observation
        if env.needs_reset is not None:
            mask = env.needs_reset(played)
            states, observation = begin_episodes(mask, states, observation, reset_key)
        ended = played.terminated | played.truncated
        return (
            Adapted(states, jnp.where(ended, 0, length), key),
            see(observation, played, length),
        )

    def begin_episodes(
        mask: Bool[Array, " N"], states: Any, observation: Array, key: PRNGKeyArray
    ) -> tuple[Any, Array]:
        """Reset where the mask is set; where it is set nowhere, nothing is computed."""

        def begin() -> tuple[Any, Array]:
            fresh = jax.vmap(env.reset)(jax.random.split(key, num_worlds))
            return jax.tree.map(
                lambda new, old: _where(mask, new, old), fresh, (states, observation)
            )

        return jax.lax.cond(mask.any(), begin, lambda: (states, observation))

    def see(observation: Array, played: Played, length: Int[Array, " N"]) -> Step:
        view, counted = bytes_of(observation)
        return Step(
            view=view,
            panorama=counted,
            reward=played.reward,
            success=played.success,
            terminated=played.terminated,
            truncated=played.truncated,
            length=length,
            environment=jnp.zeros(num_worlds, jnp.int32),
            interaction=jnp.zeros((num_worlds, 2), jnp.uint32),  # nothing is known of full states
        )

    return World[Adapted](
        init=init,
        step=step,
        refresh=lambda adapted: adapted,
        report=lambda adapted: {},
        num_worlds=num_worlds,
        num_actions=env.num_actions,
        view_shape=view_shape,
        environments=(env.name,),
        max_steps=env.max_steps,
        unmeasured=("interactions",) if env.says_success else ("interactions", "success"),
    )


def _space_bounds(space: Any) -> Bounds | None:
    """Return the bounds that a space of gymnax or navix says, None where it says none."""
    if hasattr(space, "n"):
        return 0, int(space.n) - 1
    low = getattr(space, "low", getattr(space, "minimum", None))
    high = getattr(space, "high", getattr(space, "maximum", None))
    if low is None or high is None:
        return None
    if max(np.abs(np.asarray(low)).max(), np.abs(np.asarray(high)).max()) > UNBOUNDED:
        return None
    return low, high


def _played(
    observation: Array, reward: Any, terminated: Any, truncated: Any, success: Any
) -> Played:
    """Return what an action brought, each with its type.

    Args:
        observation: after it.
        reward: for it.
        terminated: whether it ended the episode in a terminal state.
        truncated: whether the episode ended at its time limit.
        success: whether it fulfilled the task.
    """
    return Played(
        observation,
        jnp.asarray(reward, jnp.float32),
        jnp.asarray(terminated, bool),
        jnp.asarray(truncated, bool),
        jnp.asarray(success, bool),
    )


def _where(mask: Bool[Array, " N"], new: Array, old: Array) -> Array:
    return jnp.where(mask.reshape(-1, *[1] * (new.ndim - 1)), new, old)
