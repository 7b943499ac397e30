"""Environments of other libraries as a `World`: what all their adapters share.

The environments keep their rules, rewards and ends. Actions are discrete; an observation is one
array, encoded as bytes (`envs.observation_bytes`). `panorama` holds its bytes, maybe coarser: the
view is counted as a state, and the difference of consecutive panoramas as a change.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from envs.observation_bytes import BYTE, Bounds, make_view
from envs.resets import AT_ONCE, reset_where
from envs.types import Step, World

UNBOUNDED = 1e6  # larger bounds count as none: unbounded spaces have the largest float

#: (reward, terminated, info) -> whether the action fulfilled the task
type Success = Callable[[Any, Any, Any], Bool[Array, ""]]


class Seen(NamedTuple):
    """An observation that is encoded already."""

    view: UInt8[Array, "height width 3"]
    panorama: UInt8[Array, " numbers"]


class Transition(NamedTuple):
    """The result of one action in one environment."""

    observation: Any  # one array, or `Seen`
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
    needs_reset: Callable[[Transition], Bool[Array, " N"]] | None = lambda after: after.ended
    says_final: bool = True  # whether observations in which episodes end are known
    unmeasured: tuple[str, ...] = ("interactions",)  # as in `World`
    resets_at_once: int = AT_ONCE


def batch_of(
    env: Environment, num_worlds: int, bounds: Bounds | None = None, levels: int = BYTE
) -> World[AdaptedState]:
    """Return a batch of an environment. The arguments are those of `from_gymnax`."""
    seen = jax.eval_shape(env.reset, jax.random.key(0))[1]
    first = _form(seen, 0)
    if isinstance(seen, Seen):
        height, width, channels = seen.view.shape
        encode, view_shape = lambda observation: observation, (height, width, channels)
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
        for what, now, before in zip(("shape", "dtype"), _form(observation, 1), first, strict=True):
            if now != before:
                raise ValueError(f"step returns an observation of {what} {now}, reset {before}")
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


def _form(observation: Any, batch_axes: int) -> tuple[Any, Any]:
    """Return the shape, without batch axes, and the dtype of each array."""
    shape = jax.tree.map(lambda leaf: leaf.shape[batch_axes:], observation)
    return shape, jax.tree.map(lambda leaf: leaf.dtype, observation)


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


def space_bounds(space: Any) -> Bounds | None:
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


def typed_transition(
    observation: Any, reward: Any, terminated: Any, truncated: Any, success: Any
) -> Transition:
    """Return a transition with the dtypes of `Step`."""
    flags = (jnp.asarray(flag, bool) for flag in (terminated, truncated, success))
    return Transition(observation, jnp.asarray(reward, jnp.float32), *flags)
