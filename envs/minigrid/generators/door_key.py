"""DoorKey: a locked door between the agent and the goal; the key is on the agent's side."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from envs.minigrid import cells as c
from envs.minigrid.generators.generator import (
    Generator,
    SampledLevel,
    choose,
    coordinates,
    empty_room,
    make_generator,
    randint,
    set_cell,
    split,
)
from envs.minigrid.level import DIRECTIONS, REACH_GOAL, make_level

MIN_SIZE = 5
COLOR = c.YELLOW  # the colour of door and key


def door_key(name: str, size: int) -> Generator:
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

    def sample_level(key: PRNGKeyArray) -> SampledLevel:
        seeds = split(key, 5)
        x, y = coordinates(size, size)
        wall = randint(seeds[0], 2, size - 2)
        door = randint(seeds[1], 1, size - 2)
        grid = set_cell(empty_room(size, size), jnp.array([size - 2, size - 2]), c.GOAL)
        grid = jnp.where(x == wall, c.WALL, grid)
        free = (grid == c.EMPTY) & (x < wall)
        (agent_y, agent_x), _ = choose(seeds[2], free)
        direction = randint(seeds[3], 0, len(DIRECTIONS))
        free = free & ((x != agent_x) | (y != agent_y))
        (key_y, key_x), found = choose(seeds[4], free)
        grid = set_cell(grid.astype(jnp.uint8), jnp.stack([wall, door]), c.locked_door(COLOR))
        grid = set_cell(grid, jnp.stack([key_x, key_y]), c.key(COLOR))
        agent = jnp.stack([agent_x, agent_y])
        return make_level(grid, agent, direction, task=REACH_GOAL, max_steps=max_steps), found

    return make_generator(name, size, size, max_steps, REACH_GOAL, sample_level)
