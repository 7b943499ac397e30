"""A small environment with gymnax's interface."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import jax.numpy as jnp

PARAMS = SimpleNamespace(max_steps_in_episode=6)
GOAL = 3


class WalkState(NamedTuple):
    place: Any
    time: Any


class Walk:
    """An agent on a line goes left or right from 0; place 3 ends an episode, as does time.

    Args:
        ends: 1 for one `done`, as gymnax had until its version 1.0; 2 for two, as it has now.
    """

    name = "Walk"

    def __init__(self, ends=1):
        self.ends = ends

    def reset(self, key, params):
        del key, params
        state = WalkState(jnp.int32(0), jnp.int32(0))
        return self._see(state), state

    def step(self, key, state, action, params):
        state = WalkState(state.place + 2 * action - 1, state.time + 1)
        final = self._see(state)
        terminated = state.place == GOAL
        truncated = ~terminated & (state.time >= params.max_steps_in_episode)
        done = terminated | truncated
        reward = jnp.where(terminated, 1.0, -0.1)
        fresh, first = self.reset(key, params)
        seen = jnp.where(done, fresh, final)
        state = WalkState(*(jnp.where(done, *pair) for pair in zip(first, state, strict=True)))
        ends = (done,) if self.ends == 1 else (terminated, truncated)
        info = {"success": terminated, "final_observation": jnp.where(done, final, 0.0)}
        return seen, state, reward, *ends, info

    def _see(self, state):
        return jnp.stack([state.place / 8.0, 0.5])

    def action_space(self, params):
        del params
        return SimpleNamespace(n=2)

    def observation_space(self, params):
        del params
        return SimpleNamespace(low=-1.0, high=1.0)
