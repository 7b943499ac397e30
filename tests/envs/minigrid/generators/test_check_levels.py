"""What is wrong with a level is found, and said in words."""

import re

import jax.numpy as jnp
import pytest

from envs.errors import ContractError, checked
from envs.minigrid import cells as c
from envs.minigrid.generators import find
from envs.minigrid.generators.check_levels import check_levels
from envs.minigrid.generators.generator import empty_room, make_generator, set_cell
from envs.minigrid.level import OPEN_DOOR, PICK_UP, REACH_GOAL, make_level, pack_position


def generator(
    *, cell=c.GOAL, at=(3, 1), deadly=False, ready=True, task=REACH_GOAL, size=(5, 3), **changed
):
    """Return a generator of one level: a room of 5 x 3 with a cell in it."""

    def sample_level(key):
        del key
        grid = set_cell(empty_room(3, 5), jnp.array(at), cell)
        options = {"agent_position": (1, 1), "agent_direction": 0, "max_steps": 9, "target": 0}
        options |= {"task": task, **changed}
        position = jnp.array(options.pop("agent_position"))
        direction = options.pop("agent_direction")
        return make_level(grid, position, direction, **options), jnp.array(ready)

    return make_generator("mine", *size, 9, task, sample_level, deadly=deadly)


@pytest.mark.parametrize("name", ["DoorKey-5x5", "LavaGapS5", "MultiRoom-N2-S4"])
def test_levels_of_the_package_pass(name):
    check_levels(find(name))


@pytest.mark.parametrize(
    "well",
    [
        generator(),
        generator(size=(7, 5)),  # around the room is wall
        generator(cell=c.LAVA, task=0, deadly=True),
        generator(cell=c.box(c.RED, c.key(c.BLUE)), task=PICK_UP, target=c.key(c.BLUE)),
        generator(cell=c.locked_door(c.RED), task=OPEN_DOOR, target=pack_position(3, 1)),
    ],
)
def test_levels_that_are_well_pass(well):
    check_levels(well, 2)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (generator(ready=False), "only 0 of 2 levels may be played"),
        (generator(at=(0, 1)), "level 0: there must be a wall all around"),
        (generator(cell=7), "a cell has no kind or colour of MiniGrid"),
        (generator(cell=c.cell(c.KIND_GOAL, c.BLUE)), "MiniGrid's: walls are grey, goals"),
        (generator(agent_position=(4, 1)), "the agent, at (4, 1), must stand on a cell"),
        (generator(agent_position=(1, 7)), "the agent, at (1, 7), must stand on a cell"),
        (generator(agent_direction=4), "the agent's direction must be 0..3, not 4"),
        (generator(max_steps=10), "max_steps must be 1..9, not 10"),
        (generator(cell=c.EMPTY), "its task is to reach the goal, and it has none"),
        (generator(cell=c.EMPTY, task=PICK_UP, target=48), "to pick up the object 48, which is"),
        (generator(task=PICK_UP, target=c.GOAL), "to pick up the object 65, which is not"),
        (generator(task=OPEN_DOOR, target=pack_position(9, 9)), "the door at (9, 9), and none is"),
        (generator(cell=c.open_door(0), task=OPEN_DOOR, target=pack_position(3, 1)), "not open"),
        (generator(cell=c.LAVA, task=0), "it has lava: say deadly=True"),
    ],
)
def test_a_wrong_level_is_told_in_words(wrong, words):
    with pytest.raises(ContractError, match=re.escape(words)):
        check_levels(wrong, 2)


def test_a_level_that_raises_fails_the_check():
    found = checked("levels", lambda: check_levels(generator(size=(4, 3))))
    assert "does not fit" in found.problem
