"""Worlds for the tests: the paper's three, few of them, and one that compiles at once."""

import jax.numpy as jnp

from envs.minigrid.generators import GENERATORS
from envs.minigrid.world import gridworld
from envs.types import Step, World

MULTI_ENV = ("MultiRoom-N4-S5", "KeyCorridorS3R3", "BlockedUnlockPickup")


def multi_env(num_worlds: int, *, explore: bool = True) -> World:
    return gridworld([GENERATORS[name] for name in MULTI_ENV], num_worlds, explore=explore)


def single_env(name: str, num_worlds: int, *, explore: bool = True) -> World:
    return gridworld([GENERATORS[name]], num_worlds, explore=explore)


def corridor(
    num_worlds: int, *, length: int = 4, max_steps: int = 7, num_actions: int = 3
) -> World:
    """Agents in a corridor that go left, stay or go right; the right end is the goal.

    Nothing but the time limit ends an episode. View and panorama are the place, all over. Of more
    than three actions the others go right, too.
    """

    def init(key):
        start = jnp.zeros(num_worlds, jnp.int32)
        return (start, start), _see(start, start, jnp.zeros(num_worlds, bool))

    def step(state, action):
        state, seen = step_with_final(state, action)
        return state, seen._replace(final_view=None)

    def step_with_final(state, action):
        place, played = state
        place, played = jnp.clip(place + action - 1, 0, length - 1), played + 1
        ended, success = played == max_steps, place == length - 1
        final = _see(place, played, success).view
        seen = _see(jnp.where(ended, 0, place), played, success)
        state = jnp.where(ended, 0, place), jnp.where(ended, 0, played)
        return state, seen._replace(truncated=ended, final_view=final)

    def _see(place, played, success):
        spread = place.astype(jnp.uint8)[:, None, None, None]
        view = jnp.broadcast_to(spread, (num_worlds, 7, 7, 3))
        panorama, never = place.astype(jnp.uint16)[:, None], jnp.zeros(num_worlds, bool)
        step = Step.without_task(view, panorama, played, never)
        return step._replace(reward=success.astype(jnp.float32), success=success)

    return World(
        init=init,
        step=step,
        step_with_final=step_with_final,
        num_worlds=num_worlds,
        num_actions=num_actions,
        view_shape=(7, 7, 3),
        environments=("corridor",),
        max_steps=max_steps,
    )
