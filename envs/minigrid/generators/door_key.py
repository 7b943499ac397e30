"""DoorKey: a locked door between the agent and the goal; the key is on the agent's side."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from envs.minigrid import cells as c
from envs.minigrid.generators import generator as g
from envs.minigrid.level import DIRECTIONS, REACH_GOAL, make_level

MIN_SIZE = 5
COLOR = c.YELLOW  # the colour of door and key


def door_key(name: str, size: int) -> g.Generator:
    """Return DoorKey on a square grid (MiniGrid's `DoorKeyEnv`).

    Args:
        name: the environment's name.
        size: cells along a side of the grid, including the outer wall (at least 5).

    Raises:
        ValueError: the grid is too small for two rooms.
    """
    if size < MIN_SIZE:
        raise ValueError(f"two rooms need a grid of at least {MIN_SIZE}, not {size}")
    max_steps = 10 * size**2

    def sample_level(key: PRNGKeyArray) -> g.SampledLevel:
        seeds = g.split(key, 5)
        x, y = g.coordinates(size, size)
        wall = g.randint(seeds[0], 2, size - 2)
        door = g.randint(seeds[1], 1, size - 2)
        grid = g.set_cell(g.empty_room(size, size), jnp.array([size - 2, size - 2]), c.GOAL)
        grid = jnp.where(x == wall, c.WALL, grid)
        free = (grid == c.EMPTY) & (x < wall)
        (agent_y, agent_x), _ = g.choose(seeds[2], free)
        direction = g.randint(seeds[3], 0, len(DIRECTIONS))
        free = free & ((x != agent_x) | (y != agent_y))
        (key_y, key_x), found = g.choose(seeds[4], free)
        grid = g.set_cell(grid.astype(jnp.uint8), jnp.stack([wall, door]), c.locked_door(COLOR))
        grid = g.set_cell(grid, jnp.stack([key_x, key_y]), c.key(COLOR))
        agent = jnp.stack([agent_x, agent_y])
        return make_level(grid, agent, direction, task=REACH_GOAL, max_steps=max_steps), found

    return g.make_generator(name, size, size, max_steps, REACH_GOAL, sample_level)
