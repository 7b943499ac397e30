"""Gridworlds with gymnax's interface: pure functions of one environment, to be vmapped.

They suit learners written for gymnax (PureJaxRL, rejax): `step` returns one `done`, unlike gymnax
1.0. gymnax is optional: without it, spaces are records with the same fields.
"""

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from envs.minigrid import rules, views
from envs.minigrid.generators import Generator, sample_levels
from envs.minigrid.level import Level
from envs.minigrid.rules import State
from envs.minigrid.world import VIEW_SHAPE

BRIGHTEST = 10  # MiniGrid's types are 0..10; colours and states have fewer values

type Observation = UInt8[Array, "7 7 3"]
type Info = dict[str, Array]


class Params(NamedTuple):
    """The parameters of an environment."""

    levels: Level | None = None  # [L, ...], one drawn per episode (None: a fresh one)
    max_steps_in_episode: int = 0  # upper bound of the levels' time limits (0: unknown)


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
    """

    def __init__(self, generator: Generator, *, explore: bool) -> None:
        self.name, self.num_actions = generator.name, len(rules.ACTIONS)
        self.default_params = Params(max_steps_in_episode=generator.max_steps)
        self._generator, self._explore = generator, explore

    def sample_params(self, key: PRNGKeyArray, levels: int) -> Params:
        """Draw a fixed set of levels, which makes automatic resets cheap.

        Otherwise every step draws a level, because `vmap` computes both branches of a `cond`.
        """
        return self.default_params._replace(levels=sample_levels(self._generator, key, levels)[0])

    def reset(self, key: PRNGKeyArray, params: Params | None = None) -> tuple[Observation, State]:
        """Begin an episode."""
        state = self._start(key, params)
        return _see(state), state

    def step(
        self,
        key: PRNGKeyArray,
        state: State,
        action: Int[Array, ""] | int,
        params: Params | None = None,
    ) -> tuple[Observation, State, Float[Array, ""], Bool[Array, ""], Info]:
        """Take an action; if it ends the episode, return the start of the next one.

        Args:
            key: draws the next level.
            state: state before the action.
            action: 0..6.
            params: the environment's parameters (None: `default_params`).

        Returns:
            Observation, state, reward, done, and information: `success`, `terminated`, `truncated`,
            `interaction` (as in `Step`) and gymnax's `discount` (0 at an end).
        """
        state, reward, done, info = self._play(state, action)
        state = jax.lax.cond(done, lambda: self._start(key, params), lambda: state)
        return _see(state), state, reward, done, info

    def reset_env(self, key: PRNGKeyArray, params: Params | None = None) -> Any:
        """Begin an episode (gymnax's other name of `reset`)."""
        return self.reset(key, params)

    def step_env(
        self,
        key: PRNGKeyArray,
        state: State,
        action: Int[Array, ""] | int,
        params: Params | None = None,
    ) -> tuple[Observation, State, Float[Array, ""], Bool[Array, ""], Info]:
        """Take an action without an automatic reset; arguments as in `step`."""
        state, reward, done, info = self._play(state, action)
        return _see(state), state, reward, done, info

    def action_space(self, params: Params | None = None) -> Any:
        """Return the space of actions, gymnax's `Discrete` or ours."""
        return _space_classes()[0](self.num_actions)

    def observation_space(self, params: Params | None = None) -> Any:
        """Return the space of observations, MiniGrid's image: gymnax's `Box` or ours."""
        return _space_classes()[1](0, BRIGHTEST, VIEW_SHAPE, jnp.uint8)

    def _start(self, key: PRNGKeyArray, params: Params | None) -> State:
        levels = (params or self.default_params).levels
        if levels is None:
            levels, index = sample_levels(self._generator, key, 1)[0], jnp.int32(0)
        else:
            index = jax.random.randint(key, (), 0, len(levels.task))
        return rules.start(jax.tree.map(lambda leaf: jnp.asarray(leaf)[index], levels))

    def _play(
        self, state: State, action: Int[Array, ""] | int
    ) -> tuple[State, Float[Array, ""], Bool[Array, ""], Info]:
        state, outcome = rules.step(state, jnp.asarray(action, jnp.int32))
        terminated, truncated = rules.episode_ends(outcome, explore=self._explore)
        done = terminated | truncated
        info = {
            "success": outcome.success,
            "terminated": terminated,
            "truncated": truncated,
            "interaction": outcome.interaction,
            "discount": 1.0 - done,
        }
        return state, outcome.reward, done, info


def _space_classes() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return gymnax's `Discrete` and `Box`, or ours if it is not installed."""
    try:
        spaces = importlib.import_module("gymnax.environments.spaces")
    except ImportError:
        return Discrete, Box
    return spaces.Discrete, spaces.Box


@custom_vmap
def _see(state: State) -> Observation:
    """Return the agent's view; under `vmap`, in a batched form, several times faster."""
    return views.egocentric(state, views.look_around(state))


@_see.def_vmap
def _see_batch(size: int, batched: list[State], states: State) -> tuple[Array, bool]:
    whole = jax.tree.map(partial(_with_axis, size), states, *batched)
    seen = views.look_around_batch(whole)
    return jnp.moveaxis(views.egocentric(whole, seen), -1, 0), True


def _with_axis(size: int, leaf: Array, is_batched: bool) -> Array:
    return leaf if is_batched else jnp.broadcast_to(leaf, (size, *leaf.shape))
