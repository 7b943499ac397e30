"""Craftax Classic, by Craftax's name: `--envs Craftax-Classic-Symbolic-v1`. Needs craftax.

A view is what Craftax draws, a cell as a pixel: the map around the agent (blocks, creatures, and at
its middle the direction that it faces), and two rows of what it carries and how it feels. Terrain
never repeats: nearly every move would change the map in a new way. A panorama is therefore
what the agent carries and feels: one more piece of wood is the same change everywhere.
Interactions are steps that unlock achievements.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from envs.adapters import AdaptedState, Environment, Seen, Transition, batch_of, typed_transition
from envs.hashing import mix
from envs.types import World

NAME = "Craftax-Classic-Symbolic-v1"
HEIGHT, WIDTH = 7, 9  # of the map that the agent sees
TENTHS = 10  # of daylight


def make(name: str, num_worlds: int) -> World[AdaptedState]:
    """Return worlds of Craftax Classic.

    Raises:
        ModuleNotFoundError: craftax is not installed.
        ValueError: the name is not Craftax Classic's.
    """
    if name not in (NAME, NAME.removesuffix("-v1")):
        raise ValueError(f"of Craftax only {NAME} is known")
    from craftax.craftax_classic.constants import BlockType
    from craftax.craftax_env import make_craftax_env_from_name

    env = make_craftax_env_from_name(NAME, auto_reset=False)
    params, outside = env.default_params, BlockType.OUT_OF_BOUNDS.value

    def reset(key: PRNGKeyArray) -> tuple[Any, Seen]:
        state = env.reset(key, params)[1]
        return state, look(state, outside)

    def step(key: PRNGKeyArray, state: Any, action: Array, length: Array) -> tuple[Any, Transition]:
        _, after, reward, done, _ = env.step(key, state, action, params)
        unlocked = after.achievements & ~state.achievements
        bits = (unlocked << jnp.arange(len(unlocked))).sum(dtype=jnp.uint32)
        truncated = done & (length >= params.max_timesteps)
        words = mix(2 * bits + jnp.arange(2, dtype=jnp.uint32)) | 1
        interaction = jnp.where(unlocked.any(), words, 0)
        seen = look(after, outside)
        found = typed_transition(seen, reward, done & ~truncated, truncated, success=False)
        return after, found._replace(interaction=interaction)

    return batch_of(
        Environment(
            name=NAME,
            num_actions=env.num_actions,
            max_steps=params.max_timesteps,
            reset=reset,
            step=step,
            unmeasured=("success",),
            resets_at_once=1,  # a terrain takes a millisecond
        ),
        num_worlds,
    )


def look(state: Any, outside: int) -> Seen:
    """Return the view and the panorama of a state.

    Args:
        state: Craftax's state.
        outside: the block outside the map.
    """
    reach = HEIGHT // 2, WIDTH // 2
    padded = jnp.pad(state.map, [(side, side) for side in reach], constant_values=outside)
    blocks = jax.lax.dynamic_slice(padded, state.player_position, (HEIGHT, WIDTH))
    creatures = jnp.zeros_like(blocks)
    for number, kind in enumerate((state.zombies, state.cows, state.skeletons, state.arrows), 1):
        row, column = (kind.position - state.player_position + jnp.array(reach)).T
        seen = kind.mask & (row >= 0) & (column >= 0)
        row = jnp.where(seen, row, HEIGHT)  # outside of the array
        creatures = creatures.at[row, column].max(number, mode="drop")
    facing = jnp.zeros_like(blocks).at[reach].set(state.player_direction)
    carried = jnp.stack(jax.tree.leaves(state.inventory))
    feels = state.player_health, state.player_food, state.player_drink, state.player_energy
    light = jnp.round(TENTHS * state.light_level)
    known = jnp.concatenate([carried, jnp.stack([*feels, light, state.is_sleeping])])
    rows = jnp.pad(known.reshape(2, WIDTH, 1), [(0, 0), (0, 0), (0, 2)])
    view = jnp.concatenate([jnp.stack([blocks, creatures, facing], -1), rows])
    return Seen(view.astype(jnp.uint8), known[: len(carried) + len(feels)].astype(jnp.uint8))
