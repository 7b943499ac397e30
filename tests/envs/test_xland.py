"""XLand-MiniGrid's worlds, on the package."""

import jax
import numpy as np
import pytest
import xminigrid
from xminigrid.core.constants import DIRECTIONS, TILES_REGISTRY, Colors, Tiles

from envs import UnsupportedEnvironment, check_world, make_world
from envs.minigrid import find
from tests.support.families import slow

NAME, WORLDS = "XLand-MiniGrid-R1-9x9", 32
FORWARD, PICK_UP, PUT_DOWN = 0, 3, 4


@pytest.fixture(scope="module", params=[slow(NAME)])
def played(request):
    """The first agent brings one object to the other, and picks up what they become."""
    world = make_world([request.param], WORLDS, explore=False)
    begun, _ = adapted, _ = jax.device_get(jax.jit(world.init)(jax.random.key(0)))
    state = adapted.states.state
    one, other, product = np.split(state.rule_encoding[0, 0, 1:], 3)
    grid, position = state.grid.copy(), np.full((WORLDS, 2), [3, 2], np.int32)
    grid[:, 1:-1, 1:-1] = TILES_REGISTRY[Tiles.FLOOR, Colors.BLACK]
    grid[:, 2, 2], grid[:, 2, 4] = one, other
    facing_up = np.zeros_like(state.agent.direction)
    agent = state.agent.replace(position=position, direction=facing_up)
    state = state.replace(grid=grid, agent=agent)
    adapted = adapted._replace(states=adapted.states.replace(state=state))
    step, steps = jax.jit(world.step), []
    # pick up; turn right, forward, turn left; put down beside the other; pick up the product
    for action in (PICK_UP, 1, FORWARD, 2, PUT_DOWN, 1, FORWARD, 2, PICK_UP):
        adapted, seen = step(adapted, np.array([action, *[1] * (WORLDS - 1)], np.int32))
        steps.append(jax.device_get(seen))
    return one, product, steps, begun.states.state


def test_two_objects_become_a_third_whose_pick_up_is_the_task(played):
    steps = played[2]
    np.testing.assert_array_equal([step.success[0] for step in steps], [False] * 8 + [True])
    assert steps[-1].terminated[0]
    assert steps[-1].reward[0] == pytest.approx(1 - 0.9 * 9 / 243)


def test_a_view_shows_what_is_carried(played):
    one, product, steps, _ = played
    code = 12 * one[0] + one[1]
    for step, carried in zip(steps[:5], [code] * 4 + [0], strict=True):
        expected = carried or 12 * Tiles.EMPTY + Colors.EMPTY
        assert step.view[0, -1, 2, 2] == expected == step.panorama[0, -1]
    made = (steps[7].view[0, ..., :2] == product).all(-1)
    assert np.argwhere(made).tolist() == [[3, 2]]  # in front of the agent


def test_panoramas_do_not_turn_with_the_agent(played):
    steps = played[2]
    np.testing.assert_array_equal(steps[0].panorama[1], steps[1].panorama[1])
    assert (steps[0].view[1] != steps[1].view[1]).any()
    assert len(DIRECTIONS) * 25 * 2 + 1 == steps[0].panorama.shape[-1]


def test_each_episode_draws_a_task(played):
    begun = played[3]
    rules = begun.rule_encoding[:, 0, 1:].reshape(WORLDS, 3, 2)
    assert len({rule.tobytes() for rule in rules}) == WORLDS
    for rule in rules:
        assert len({tile.tobytes() for tile in rule}) == 3
    np.testing.assert_array_equal(begun.goal_encoding[:, 1:3], rules[:, 2])


@pytest.mark.slow
def test_it_keeps_the_contract():
    problems = [
        check for check in check_world(make_world([NAME], 3, explore=True)) if check.problem
    ]
    assert problems == []


def test_names_are_xminigrids():
    assert NAME in xminigrid.registered_environments()
    with pytest.raises(UnsupportedEnvironment, match="did you mean XLand-MiniGrid-R"):
        make_world(["XLand-MiniGrid-R3"], 2, explore=False)
    with pytest.raises(UnsupportedEnvironment, match="needs a gridworld's levels"):
        find(NAME)
