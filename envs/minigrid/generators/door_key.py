"""DoorKey: a locked door between the agent and the goal, its key on the agent's side."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PRNGKeyArray

from envs.minigrid import cells as c
from envs.minigrid.generators.generator import (
    Generator,
    choose,
    coordinates,
    empty_room,
    one_by_one,
    put,
)
from envs.minigrid.level import DIRECTIONS, REACH_GOAL, Level, make_level

MIN_SIZE = 5


def door_key(name: str, size: int, color: int = c.YELLOW) -> Generator:
    """DoorKey on a square grid (MiniGrid's `DoorKeyEnv`).

    Args:
        name: the environment's name.
        size: cells along a side of the grid, outer wall included (at least 5).
        color: of the door and its key.

    Raises:
        ValueError: the grid is too small for two rooms.
    """
    if size < MIN_SIZE:
        raise ValueError(f"{name}: two rooms need a grid of at least {MIN_SIZE}, not {size}")
    max_steps = 10 * size**2

    def draw_one(key: PRNGKeyArray) -> tuple[Level, Bool[Array, ""]]:
        keys = jax.random.split(key, 5)
        x, y = coordinates(size, size)
        wall = jax.random.randint(keys[0], (), 2, size - 2)
        door = jax.random.randint(keys[1], (), 1, size - 2)
        grid = put(empty_room(size, size), jnp.array([size - 2, size - 2]), c.GOAL)
        grid = jnp.where(x == wall, c.WALL, grid)
        free = (grid == c.EMPTY) & (x < wall)
        (agent_y, agent_x), _ = choose(keys[2], free)
        direction = jax.random.randint(keys[3], (), 0, len(DIRECTIONS))
        free = free & ((x != agent_x) | (y != agent_y))
        (key_y, key_x), found = choose(keys[4], free)
        grid = put(grid.astype(jnp.uint8), jnp.stack([wall, door]), c.locked_door(color))
        grid = put(grid, jnp.stack([key_x, key_y]), c.key(color))
        agent = jnp.stack([agent_x, agent_y])
        return make_level(grid, agent, direction, task=REACH_GOAL, max_steps=max_steps), found

    return one_by_one(name, size, size, max_steps, REACH_GOAL, draw_one)
