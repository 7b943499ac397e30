"""Gridworlds with Stoa's interface, for Stoix: pure functions of one environment, to be vmapped.

Importing this module imports stoa, an optional package. Stoa's wrappers add automatic resets,
episode metrics and `vmap`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray
from stoa import BoundedArraySpace, DiscreteSpace, Environment, Space, StepType, TimeStep

from envs.minigrid.gymnax_environment import BRIGHTEST, GymnaxEnvironment, Observation, Params
from envs.minigrid.rules import State
from envs.minigrid.world import VIEW_SHAPE


class StoaEnvironment(Environment):
    """One gridworld. A time step's `extras` hold `success`, a bool.

    Args:
        env: the same gridworld with gymnax's interface.
    """

    def __init__(self, env: GymnaxEnvironment) -> None:
        self._env, self.name = env, env.name

    def reset(
        self, rng_key: PRNGKeyArray, env_params: Params | None = None
    ) -> tuple[State, TimeStep]:
        """Begin an episode.

        Args:
            rng_key: draws the level.
            env_params: as of `gymnax_env`: levels to choose among (None: a fresh one).
        """
        view, state = self._env.reset(rng_key, env_params)
        return state, _time_step(StepType.FIRST, jnp.zeros(()), view, jnp.zeros((), bool))

    def step(
        self, state: State, action: Int[Array, ""] | int, env_params: Params | None = None
    ) -> tuple[State, TimeStep]:
        """Take an action, 0..6. An episode that has ended is not begun anew."""
        key = jax.random.key(0)  # draws nothing
        view, state, reward, _, info = self._env.step_env(key, state, action, env_params)
        ends = [info["terminated"], info["truncated"]]
        kind = jnp.select(ends, [StepType.TERMINATED, StepType.TRUNCATED], StepType.MID)
        return state, _time_step(kind, reward, view, info["success"])

    def observation_space(self, env_params: Params | None = None) -> Space:
        """Return the space of views: MiniGrid's images."""
        return BoundedArraySpace(VIEW_SHAPE, jnp.uint8, 0, BRIGHTEST, "observation")

    def action_space(self, env_params: Params | None = None) -> Space:
        """Return the space of actions."""
        return DiscreteSpace(self._env.num_actions, jnp.int32, "action")

    def state_space(self, env_params: Params | None = None) -> Space:
        """Refuse, since a state is a record."""
        raise NotImplementedError("a gridworld's state is a record, and has no space")


def _time_step(kind: Any, reward: Array, view: Observation, success: Bool[Array, ""]) -> TimeStep:
    """Return a time step, whose discount is 0 where the episode terminated."""
    discount = jnp.where(kind == StepType.TERMINATED, 0.0, 1.0)
    return TimeStep(kind, jnp.asarray(reward, jnp.float32), discount, view, {"success": success})
