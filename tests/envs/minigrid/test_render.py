"""Pictures of levels, against MiniGrid's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minigrid.minigrid_env import MiniGridEnv

from envs.minigrid import cells as c
from envs.minigrid.export import export
from envs.minigrid.level import REACH_GOAL, make_level
from envs.minigrid.level_text import from_text
from envs.minigrid.render import SPRITE_SIZE, agents_view, whole_grid
from envs.minigrid.rules import State, start
from tests.support.handmade_levels import every_cell, random_levels
from tests.support.minigrid_reference import TASK_ENVIRONMENTS, make, rebuild


def walled(row: str) -> State:
    """Return the start of a level of one row of cells, with its outer wall."""
    wall = "WG" * (len(row) // 2 + 2)
    return start(from_text(f"{wall}\nWG{row}WG\n{wall}", task=REACH_GOAL))


def rebuilt(state: State) -> MiniGridEnv:
    exported = export(state)
    env = make(TASK_ENVIRONMENTS[exported.task])
    rebuild(exported, env)
    return env


@pytest.mark.parametrize("task", ["reach the goal", "pick up the object", "open the door"])
def test_pictures_are_minigrids_own(task):
    levels = random_levels(np.random.default_rng(5), task, 4)
    for index in range(4):
        state = start(jax.tree.map(lambda leaf, index=index: leaf[index], levels))
        env = rebuilt(state)
        theirs = env.get_frame(highlight=True, tile_size=SPRITE_SIZE)
        np.testing.assert_array_equal(whole_grid(state), theirs)
        seen = env.get_frame(highlight=True, tile_size=SPRITE_SIZE, agent_pov=True)
        np.testing.assert_array_equal(agents_view(state), seen)


@pytest.mark.parametrize("carried", [c.key(c.YELLOW), c.ball(c.BLUE), c.box(c.GREEN)])
def test_the_carried_object_lies_under_the_agent_in_its_view(carried):
    state = walled(">>  DR")._replace(carrying=jnp.uint8(carried))
    theirs = rebuilt(state).get_frame(highlight=True, tile_size=SPRITE_SIZE, agent_pov=True)
    np.testing.assert_array_equal(agents_view(state), theirs)
    empty_handed = agents_view(state._replace(carrying=jnp.uint8(c.EMPTY)))
    assert (agents_view(state) != empty_handed).any()


@pytest.mark.parametrize("size", [SPRITE_SIZE, 16])
def test_cells_look_different_unless_only_their_contents_differ(size):
    cells = every_cell()
    grid = np.full((3, len(cells) + 4), c.WALL, np.uint8)
    grid[1, 1:-3] = cells
    grid[1, -2] = c.EMPTY
    agent = jnp.array([len(cells) + 2, 1])  # behind a wall, which leaves all of them in the dark
    row = whole_grid(start(make_level(jnp.array(grid), agent, 0, task=0, max_steps=1)), size)
    tiles = row[size : 2 * size].reshape(size, -1, size, 3).swapaxes(0, 1)[1:-3]
    looks = {cell: tile.tobytes() for cell, tile in zip(cells, tiles, strict=True)}
    boxes = [cell for cell in cells if cell >> 3 > c.KIND_BOX]
    assert len({looks[cell] for cell in cells if cell not in boxes}) == len(cells) - len(boxes)
    assert all(looks[cell] == looks[c.box(cell & 7)] for cell in boxes)


def test_a_picture_shows_one_state():
    levels = random_levels(np.random.default_rng(0), "open the door", 2)
    with pytest.raises(ValueError, match="not a batch"):
        whole_grid(jax.vmap(start)(levels))
    with pytest.raises(ValueError, match="at least 1 pixel"):
        whole_grid(walled(">>"), 0)
