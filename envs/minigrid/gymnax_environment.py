"""Gridworlds with gymnax's interface: pure functions of one environment, to be vmapped.

They suit learners written for gymnax (PureJaxRL, rejax, JaxUED), whose `step` returns one `done`;
with `api="1.0"` it returns `terminated` and `truncated`, as in gymnax 1.0. gymnax is optional:
without it, spaces are records with the same fields.
"""

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt8

from envs.minigrid import rules, views
from envs.minigrid.generators import Generator, sample_levels
from envs.minigrid.level import Level
from envs.minigrid.observations import BRIGHTEST, Observer, observer_of
from envs.minigrid.rules import State
from envs.minigrid.world import VIEW_SHAPE
from envs.resets import reset_where

APIS = ("0", "1.0")

type Observation = UInt8[Array, "height width 3"]


class Params(NamedTuple):
    """The parameters of an environment."""

    levels: Level | None = None  # [L, ...], one drawn per episode (None: a fresh one)
    max_steps_in_episode: int = 0  # at most (0: unknown); `gymnax_env(max_steps=...)` sets it


class Discrete(NamedTuple):
    """The space of actions."""

    n: int
    shape: tuple[int, ...] = ()
    dtype: Any = jnp.int32

    def sample(self, key: PRNGKeyArray) -> Int[Array, ""]:
        """Return an action, each with the same chance."""
        return jax.random.randint(key, self.shape, 0, self.n, self.dtype)


class Box(NamedTuple):
    """The space of observations."""

    low: int
    high: int  # included
    shape: tuple[int, ...]
    dtype: Any

    def sample(self, key: PRNGKeyArray) -> Array:
        """Return an array of random numbers."""
        return jax.random.randint(key, self.shape, self.low, self.high + 1).astype(self.dtype)


class GymnaxEnvironment:
    """One gridworld, with automatic resets.

    Args:
        generator: samples the levels.
        explore: whether episodes continue after success.
        api: gymnax's version, `0` or `1.0`.
        **view_options: as of `observations.observer_of`.
    """

    def __init__(
        self, generator: Generator, *, explore: bool, api: str, **view_options: Any
    ) -> None:
        if api not in APIS:
            raise ValueError(f"api must be one of {', '.join(APIS)}, not {api!r}")
        observer = observer_of([generator], **view_options)
        self._shape, _, self._brightest = observer or (VIEW_SHAPE, None, BRIGHTEST)
        self._see: Any = partial(_see_otherwise, observer) if observer else _see
        self._begin_where, self._api = _begin_where(generator, self._see), api
        self.name, self.num_actions = generator.name, len(rules.ACTIONS)
        self.default_params = Params(max_steps_in_episode=generator.max_steps)
        self._generator, self._explore = generator, explore

    def sample_params(self, key: PRNGKeyArray, levels: int) -> Params:
        """Draw a fixed set of levels, for example to train in a few and to evaluate in others."""
        return self.default_params._replace(levels=sample_levels(self._generator, key, levels)[0])

    def reset(self, key: PRNGKeyArray, params: Params | None = None) -> tuple[Observation, State]:
        """Begin an episode."""
        state = self._start(key, params)
        return self._see(state), state

    def step(
        self,
        key: PRNGKeyArray,
        state: State,
        action: Int[Array, ""] | int,
        params: Params | None = None,
    ) -> tuple[Any, ...]:
        """Take an action; if it ends the episode, return the start of the next one.

        Without levels in `params`, every episode has a fresh one. It is drawn only where an episode
        ends, also under `vmap`.

        Args:
            key: draws the next level.
            state: state before the action.
            action: 0..6.
            params: the environment's parameters (None: `default_params`).

        Returns:
            Observation, state, reward, done (`api` 1.0: terminated, truncated), and information:
            `success`, `terminated`, `truncated` (never both), `interaction` (as in `Step`),
            `final_observation`, the view that the action led to, and gymnax's `discount` (0 at an
            end, with `api` 1.0 at a termination).
        """
        view, state, reward, *ends, info = self.step_env(key, state, action, params)
        ended = info["terminated"] | info["truncated"]
        if (params or self.default_params).levels is None:
            view, state = self._begin_where(ended, key, (view, state))
        else:
            state = jax.lax.cond(ended, lambda: self._start(key, params), lambda: state)
            view = self._see(state)
        return view, state, reward, *ends, info

    reset_env = reset  # gymnax's other name

    def step_env(
        self,
        key: PRNGKeyArray,
        state: State,
        action: Int[Array, ""] | int,
        params: Params | None = None,
    ) -> tuple[Any, ...]:
        """Take an action without an automatic reset; arguments and results as in `step`."""
        state, outcome = rules.step(state, jnp.asarray(action, jnp.int32))
        terminated, truncated = rules.episode_ends(outcome, explore=self._explore)
        view, done = self._see(state), terminated | truncated
        info = {
            "success": outcome.success,
            "terminated": terminated,
            "truncated": truncated,
            "interaction": outcome.interaction,
            "final_observation": view,
            "discount": 1.0 - (terminated if self._api == "1.0" else done),
        }
        ends = (terminated, truncated) if self._api == "1.0" else (done,)
        return view, state, outcome.reward, *ends, info

    def action_space(self, params: Params | None = None) -> Any:
        """Return the space of actions, gymnax's `Discrete` or ours."""
        return _space_classes()[0](self.num_actions)

    def observation_space(self, params: Params | None = None) -> Any:
        """Return the space of observations, MiniGrid's image: gymnax's `Box` or ours."""
        return _space_classes()[1](0, self._brightest, self._shape, jnp.uint8)

    def _start(self, key: PRNGKeyArray, params: Params | None) -> State:
        levels = (params or self.default_params).levels
        if levels is None:
            return _begin(self._generator, key)
        index = jax.random.randint(key, (), 0, len(levels.task))
        return rules.start(jax.tree.map(lambda leaf: jnp.asarray(leaf)[index], levels))


def _begin(generator: Generator, key: PRNGKeyArray) -> State:
    """Begin an episode in a fresh level."""
    levels, _ = sample_levels(generator, key, 1)
    return rules.start(jax.tree.map(lambda leaf: leaf[0], levels))


def _begin_where(
    generator: Generator, see: Callable[[State], Observation]
) -> Callable[..., tuple[Observation, State]]:
    """Return a function that begins an episode if one has ended.

    It takes `ended`, a key, and view and state, which it returns. `vmap` computes both branches of
    a `cond`, a level for every environment in every step. Here it draws levels only for those that
    need one.
    """

    def begin(key: PRNGKeyArray) -> tuple[Observation, State]:
        state = _begin(generator, key)
        return see(state), state

    @custom_vmap
    def begin_where(ended: Bool[Array, ""], key: PRNGKeyArray, now: Any) -> Any:
        return jax.lax.cond(ended, lambda: begin(key), lambda: now)

    @begin_where.def_vmap
    def begin_batch(size: int, batched: list[Any], *given: Any) -> tuple[Any, Any]:
        ended, keys, now = jax.tree.map(partial(_with_axis, size), given, tuple(batched))
        now = reset_where(ended, keys, now, begin)
        return now, jax.tree.map(lambda _: True, now)

    return begin_where


def _space_classes() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return gymnax's `Discrete` and `Box`, or ours if it is not installed."""
    try:
        spaces = importlib.import_module("gymnax.environments.spaces")
    except ImportError:
        return Discrete, Box
    return spaces.Discrete, spaces.Box


@custom_vmap
def _see(state: State) -> Observation:
    """Return the agent's view; under `vmap`, in a batched form, several times faster.

    It uses no constant arrays, which JAX batches inside a `cond`, and then refuses.
    """
    return views.egocentric(state, views.look_around(state))


@_see.def_vmap
def _see_batch(size: int, batched: list[State], states: State) -> tuple[Array, bool]:
    whole = jax.tree.map(partial(_with_axis, size), states, *batched)
    seen = views.look_around_batch(whole)
    return jnp.moveaxis(views.egocentric(whole, seen), -1, 0), True


def _see_otherwise(observer: Observer, state: State) -> Observation:
    """Return what an observer, which sees a batch, shows to one agent."""
    return observer.see(jax.tree.map(lambda leaf: leaf[None], state))[0]


def _with_axis(size: int, leaf: Any, is_batched: bool) -> Array:
    return leaf if is_batched else jnp.broadcast_to(leaf, (size, *leaf.shape))
