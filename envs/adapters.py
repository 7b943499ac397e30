"""Environments of other libraries as a `World`: navix's, and those with gymnax's interface.

They keep their rules, rewards and ends. Actions are discrete; an observation is one array, encoded
as bytes (`envs.observation_bytes`). `panorama` holds the same bytes: counts treat an observation as
a state, and the difference of consecutive observations as a change.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from envs.observation_bytes import BYTE, Bounds, make_view
from envs.resets import AT_ONCE, reset_where
from envs.types import Step, World

FINAL = "final_observation"  # in a step's information
UNBOUNDED = 1e6  # larger bounds count as none: unbounded spaces have the largest float

#: (reward, terminated, info) -> whether the action fulfilled the task
type Success = Callable[[Any, Any, Any], Bool[Array, ""]]


class Transition(NamedTuple):
    """The result of one action in one environment."""

    observation: Any  # one array, or the view and the panorama
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]
    success: Bool[Array, ""]
    final: Any = None  # the observation that the action led to (None: `observation`)
    interaction: Any = np.zeros(2, np.uint32)  # uint32[2], as in `Step`

    @property
    def ended(self) -> Bool[Array, "*N"]:
        """Whether the episode ended."""
        return self.terminated | self.truncated


class AdaptedState(NamedTuple):
    """The state of `N` environments."""

    states: Any  # the environments' own states, arrays [N, ...]
    length: Int[Array, " N"]  # steps played in the current episode
    key: PRNGKeyArray


class Environment(NamedTuple):
    """The interface that the adapters of all libraries share, for one environment."""

    name: str
    num_actions: int
    max_steps: int
    reset: Callable[[PRNGKeyArray], tuple[Any, Any]]  # key -> state, observation
    #: key, state, action, steps of the episode including this one -> state, transition
    step: Callable[[PRNGKeyArray, Any, Array, Array], tuple[Any, Transition]]
    #: masks ended episodes that `step` did not reset; None: `step` always resets
    needs_reset: Callable[[Transition], Bool[Array, " N"]] | None
    says_final: bool = True  # whether observations in which episodes end are known
    unmeasured: tuple[str, ...] = ("interactions",)  # as in `World`
    resets_at_once: int = AT_ONCE


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
) -> World[AdaptedState]:
    """Return a batch of an environment with gymnax's interface.

    It needs `reset(key, params)`, an auto-resetting `step(key, state, action, params)` and
    `action_space(params)`. A step returns `terminated` and `truncated` (gymnax 1.0) or one `done`,
    which is a truncation where `info["truncated"]` is set or, without that key, at the time limit.
    Final views are those of `info["final_observation"]`, if present.

    Args:
        env: the environment.
        params: the environment's parameters.
        num_worlds: size of the batch.
        bounds: bounds of an observation's numbers (None: those of `observation_space(params)`).
            Real numbers need bounds.
        levels: quantization levels of a real number in counts, 2 to 256.
        max_steps: time limit in steps; `params.max_steps_in_episode` holds, too, if smaller.
        success: whether an action fulfilled the task (None: `info["success"]`, if present).
        name: name in metrics and tables (None: `env.name` or the class's name).

    Raises:
        ValueError: the environment cannot be adapted; one line says why.
    """
    limit, num_actions = _time_limit(params, max_steps), _num_actions(env, params)
    if bounds is None and (space := getattr(env, "observation_space", None)) is not None:
        bounds = _space_bounds(space(params))

    def reset(key: PRNGKeyArray) -> tuple[Any, Array]:
        observation, state = env.reset(key, params)
        return state, observation

    def step(key: PRNGKeyArray, state: Any, action: Array, length: Array) -> tuple[Any, Transition]:
        observation, state, reward, *ends, info = env.step(key, state, action, params)
        at_limit = length >= limit
        terminated, truncated = _ends(ends, info, at_limit)
        final = info.get(FINAL)
        if final is not None:  # while an episode goes on, it may be anything
            final = jnp.where(terminated | truncated, final, observation)
        if max_steps is not None:  # the environment may not enforce it
            truncated = truncated | (at_limit & ~terminated)
        if success is not None:
            reached = success(reward, terminated, info)
        else:
            reached = info.get("success", False)
        seen = _transition(observation, reward, terminated, truncated, reached)
        return state, seen._replace(final=final)

    told = _told(env, params)
    says_success = success is not None or "success" in told
    return batch_of(
        Environment(
            name=name or str(getattr(env, "name", type(env).__name__)),
            num_actions=num_actions,
            max_steps=limit,
            reset=reset,
            step=step,
            needs_reset=None if max_steps is None else lambda transition: transition.truncated,
            says_final=FINAL in told,
            unmeasured=("interactions",) if says_success else ("interactions", "success"),
        ),
        num_worlds,
        bounds,
        levels,
    )


def _time_limit(params: Any, max_steps: int | None) -> int:
    limits = [max_steps, getattr(params, "max_steps_in_episode", None)]
    known = [int(limit) for limit in limits if limit is not None]
    if not known:
        raise ValueError("its params have no max_steps_in_episode: give max_steps")
    return min(known)


def _num_actions(env: Any, params: Any) -> int:
    actions = getattr(env.action_space(params), "n", None)
    if actions is None:
        raise ValueError("its actions must be discrete: action_space(params) has no n")
    return operator.index(actions)


def _ends(
    ends: Sequence[Any], info: Mapping[str, Any], at_limit: Bool[Array, ""]
) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
    """Return `terminated` and `truncated`, never both true.

    Args:
        ends: `terminated` and `truncated`, or one `done`.
        info: the step's information; its `truncated` classifies a `done`.
        at_limit: whether the time limit was reached.
    """
    if len(ends) == 2:
        terminated, truncated = (jnp.asarray(end, bool) for end in ends)
        return terminated, truncated & ~terminated
    (done,) = ends
    truncated = done & jnp.asarray(info.get("truncated", at_limit), bool)
    return done & ~truncated, truncated


def _told(env: Any, params: Any) -> set[str]:
    """Return what a step's `info` has, without running it."""
    told: set[str] = set()

    def look() -> None:
        key, action = jax.random.key(0), jnp.zeros((), jnp.int32)
        given = env.step(key, env.reset(key, params)[1], action, params)
        if len(given) not in (5, 6):
            raise ValueError(f"step must return five or six values, not {len(given)}")
        told.update(given[-1])

    jax.eval_shape(look)
    return told


def from_navix(
    env: Any,
    num_worlds: int,
    *,
    bounds: Bounds | None = None,
    levels: int = BYTE,
    success: Success | None = None,
    name: str | None = None,
) -> World[AdaptedState]:
    """Return a batch of a navix environment with navix's own rules and observations.

    (`--envs Navix-FourRooms-v0` plays navix's levels by MiniGrid's rules.)

    Args:
        env: the environment, as `navix.make` returns it.
        num_worlds: size of the batch.
        bounds: bounds of an observation's numbers (None: those of `observation_space`).
        levels: quantization levels of a real number in counts, 2 to 256.
        success: whether an action fulfilled the task (None: it ended the episode with a reward).
        name: name in metrics and tables (None: the class's name).

    Raises:
        ValueError: the environment cannot be adapted; one line says why.
    """
    env = env.replace(disable_autoreset=True)  # it resets one step later than a `World`

    def reset(key: PRNGKeyArray) -> tuple[Any, Array]:
        timestep = env.reset(key)
        return timestep, timestep.observation

    def step(key: PRNGKeyArray, timestep: Any, action: Array, _: Array) -> tuple[Any, Transition]:
        del key  # `timestep` holds one
        after = env.step(timestep, action)
        terminated, reward = after.is_termination(), after.reward
        reached = success(reward, terminated, after.info) if success else terminated & (reward > 0)
        return after, _transition(
            after.observation, reward, terminated, after.is_truncation(), reached
        )

    return batch_of(
        Environment(
            name=name or type(env).__name__,
            num_actions=len(env.action_set),
            max_steps=int(env.max_steps),
            reset=reset,
            step=step,
            needs_reset=lambda transition: transition.ended,
        ),
        num_worlds,
        _space_bounds(env.observation_space) if bounds is None else bounds,
        levels,
    )


def batch_of(
    env: Environment, num_worlds: int, bounds: Bounds | None = None, levels: int = BYTE
) -> World[AdaptedState]:
    """Return a batch of an environment. The arguments are those of `from_gymnax`."""
    seen = jax.eval_shape(env.reset, jax.random.key(0))[1]
    first_shape = jax.tree.map(lambda leaf: leaf.shape, seen)
    if isinstance(seen, tuple):  # view and panorama
        encode, view_shape = lambda observation: observation, seen[0].shape
    else:
        encode, view_shape = make_view(seen, bounds, levels)

    def init(key: PRNGKeyArray) -> tuple[AdaptedState, Step]:
        key, reset_key = jax.random.split(key)
        states, observation = jax.vmap(env.reset)(jax.random.split(reset_key, num_worlds))
        states = jax.tree.map(strong, states)
        zero, never = jnp.zeros(num_worlds, jnp.int32), jnp.zeros(num_worlds, bool)
        first = Transition(observation, jnp.zeros(num_worlds), never, never, never)
        first = first._replace(interaction=jnp.zeros((num_worlds, 2), jnp.uint32))
        return AdaptedState(states, zero, key), _as_step(first, zero, *encode(observation))

    def step(
        adapted: AdaptedState, action: Int[Array, " N"], *, final: bool = False
    ) -> tuple[AdaptedState, Step]:
        key, step_key, reset_key = jax.random.split(adapted.key, 3)
        length = adapted.length + 1
        keys = jax.random.split(step_key, num_worlds)
        states, transition = jax.vmap(env.step)(keys, adapted.states, action, length)
        states = jax.tree.map(strong, states)
        observation = transition.observation
        shape = jax.tree.map(lambda leaf: leaf.shape[1:], observation)
        if shape != first_shape:
            raise ValueError(f"step returns an observation of shape {shape}, reset {first_shape}")
        if env.needs_reset is not None:
            mask = env.needs_reset(transition)
            keys = jax.random.split(reset_key, num_worlds)
            now, begin = (states, observation), env.reset
            states, observation = reset_where(mask, keys, now, begin, env.resets_at_once)
        after = AdaptedState(states, jnp.where(transition.ended, 0, length), key)
        seen = _as_step(transition, length, *encode(observation))
        if final:
            last = transition.observation if transition.final is None else transition.final
            seen = seen._replace(final_view=encode(last)[0])
        return after, seen

    return World[AdaptedState](
        init=init,
        step=step,
        step_with_final=partial(step, final=True) if env.says_final else None,
        num_worlds=num_worlds,
        num_actions=env.num_actions,
        view_shape=view_shape,
        environments=(env.name,),
        max_steps=env.max_steps,
        unmeasured=env.unmeasured,
    )


def _as_step(
    transition: Transition,
    length: Int[Array, " N"],
    view: UInt8[Array, "N height width 3"],
    counted: UInt8[Array, "N numbers"],
) -> Step:
    return Step(
        view=view,
        panorama=counted,
        reward=transition.reward,
        success=transition.success,
        terminated=transition.terminated,
        truncated=transition.truncated,
        length=length,
        environment=jnp.zeros_like(length),
        interaction=transition.interaction,
    )


def strong(leaf: Array) -> Array:
    """Return an array whose type is not weak: a step compiled for it is not compiled again."""
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return leaf if is_key else jax.lax.convert_element_type(leaf, leaf.dtype)


def _space_bounds(space: Any) -> Bounds | None:
    """Return the bounds of a space of gymnax or navix, None if it is unbounded."""
    if hasattr(space, "n"):
        return 0, int(space.n) - 1
    low = getattr(space, "low", getattr(space, "minimum", None))
    high = getattr(space, "high", getattr(space, "maximum", None))
    if low is None or high is None:
        return None
    if max(np.abs(np.asarray(low)).max(), np.abs(np.asarray(high)).max()) > UNBOUNDED:
        return None
    return low, high


def _transition(
    observation: Array, reward: Any, terminated: Any, truncated: Any, success: Any
) -> Transition:
    """Return a transition with the dtypes of `Step`."""
    flags = (jnp.asarray(flag, bool) for flag in (terminated, truncated, success))
    return Transition(observation, jnp.asarray(reward, jnp.float32), *flags)
