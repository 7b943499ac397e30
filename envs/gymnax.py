"""Environments with gymnax's interface as a `World`."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PRNGKeyArray

from envs.adapters import (
    AdaptedState,
    Environment,
    Success,
    Transition,
    batch_of,
    space_bounds,
    typed_transition,
)
from envs.observation_bytes import BYTE, Bounds
from envs.types import World

FINAL = "final_observation"  # in a step's information


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
        levels: quantization levels of a real number in `panorama`, 2 to 256 (`view` keeps 256).
        max_steps: time limit in steps; `params.max_steps_in_episode` holds, too, if smaller.
        success: whether an action fulfilled the task (None: `info["success"]`, if present).
        name: name in metrics and tables (None: `env.name` or the class's name).

    Raises:
        ValueError: the environment cannot be adapted; one line says why.
    """
    own_limit, limit = _time_limits(params, max_steps)
    num_actions = _num_actions(env, params)
    if bounds is None and (space := getattr(env, "observation_space", None)) is not None:
        bounds = space_bounds(space(params))

    def reset(key: PRNGKeyArray) -> tuple[Any, Any]:
        observation, state = env.reset(key, params)
        return state, observation

    def step(key: PRNGKeyArray, state: Any, action: Array, length: Array) -> tuple[Any, Transition]:
        observation, state, reward, *ends, info = env.step(key, state, action, params)
        terminated, truncated = _ends(ends, info, length >= own_limit)
        final = info.get(FINAL)
        if final is not None:  # while an episode goes on, it may be anything
            final = jnp.where(terminated | truncated, final, observation)
        if max_steps is not None:  # the environment may not enforce it
            truncated = truncated | ((length >= max_steps) & ~terminated)
        reached = success(reward, terminated, info) if success else info.get("success", False)
        seen = typed_transition(observation, reward, terminated, truncated, reached)
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


def _time_limits(params: Any, max_steps: int | None) -> tuple[int | float, int]:
    """Return the environment's own time limit, which may be infinite, and the one that holds."""
    if max_steps is not None and (not hasattr(max_steps, "__index__") or max_steps < 1):
        raise ValueError(f"max_steps must be a whole number of at least 1, not {max_steps!r}")
    own = getattr(params, "max_steps_in_episode", None)
    limits = [np.inf if limit is None else int(limit) for limit in (own, max_steps)]
    if min(limits) == np.inf:
        raise ValueError("its params have no max_steps_in_episode: give max_steps")
    return limits[0], int(min(limits))


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
        at_limit: whether the environment's own time limit was reached.
    """
    if len(ends) == 2:
        terminated, truncated = (jnp.asarray(end, bool) for end in ends)
        return terminated, truncated & ~terminated
    done = jnp.asarray(ends[0], bool)
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
