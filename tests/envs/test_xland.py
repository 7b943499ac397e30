"""XLand-MiniGrid's worlds, on the package."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xminigrid
from xminigrid.core.constants import DIRECTIONS, TILES_REGISTRY, Colors, Tiles

from envs import UnsupportedEnvironment, check_world, make_world
from envs.minigrid import find

NAME = "XLand-MiniGrid-R1-9x9"
FORWARD, PICK_UP, PUT_DOWN = 0, 3, 4


@pytest.fixture(scope="module")
def world():
    return make_world([NAME], 2, explore=False)


@pytest.fixture(scope="module")
def played(world):
    """The first agent brings one object to the other, and picks up what they become."""
    adapted, _ = jax.jit(world.init)(jax.random.key(0))
    state = adapted.states.state
    one, other, product = jnp.split(state.rule_encoding[0, 0, 1:], 3)
    floor = TILES_REGISTRY[Tiles.FLOOR, Colors.BLACK]
    inside = jnp.broadcast_to(floor, (2, 7, 7, 2))
    grid = state.grid.at[:, 1:-1, 1:-1].set(inside)
    grid = grid.at[:, 2, 2].set(one).at[:, 2, 4].set(other)
    facing_up = jnp.zeros_like(state.agent.direction)
    agent = state.agent.replace(
        position=jnp.broadcast_to(jnp.array([3, 2]), (2, 2)), direction=facing_up
    )
    state = state.replace(grid=grid, agent=agent)
    adapted = adapted._replace(states=adapted.states.replace(state=state))
    step, steps = jax.jit(world.step), []
    # pick up; turn right, forward, turn left; put down beside the other; pick up the product
    for action in (PICK_UP, 1, FORWARD, 2, PUT_DOWN, 1, FORWARD, 2, PICK_UP):
        adapted, seen = step(adapted, jnp.array([action, 1]))
        steps.append(jax.device_get(seen))
    return np.asarray(one), np.asarray(product), steps


def test_two_objects_become_a_third_whose_pick_up_is_the_task(played):
    _, _, steps = played
    np.testing.assert_array_equal([step.success[0] for step in steps], [False] * 8 + [True])
    assert steps[-1].terminated[0]
    assert steps[-1].reward[0] == pytest.approx(1 - 0.9 * 9 / 243)


def test_a_view_shows_what_is_carried(played):
    one, product, steps = played
    code = 12 * one[0] + one[1]
    for step, carried in zip(steps[:5], [code] * 4 + [0], strict=True):
        expected = carried or 12 * Tiles.EMPTY + Colors.EMPTY
        assert step.view[0, -1, 2, 2] == expected == step.panorama[0, -1]
    made = (steps[7].view[0, ..., :2] == product).all(-1)
    assert np.argwhere(made).tolist() == [[3, 2]]  # in front of the agent


def test_panoramas_do_not_turn_with_the_agent(played):
    _, _, steps = played
    np.testing.assert_array_equal(steps[0].panorama[1], steps[1].panorama[1])
    assert (steps[0].view[1] != steps[1].view[1]).any()
    assert len(DIRECTIONS) * 25 * 2 + 1 == steps[0].panorama.shape[-1]


def test_each_episode_draws_a_task(world):
    adapted, _ = jax.jit(make_world([NAME], 32, explore=False).init)(jax.random.key(0))
    rules = np.asarray(adapted.states.state.rule_encoding[:, 0, 1:]).reshape(32, 3, 2)
    assert len({rule.tobytes() for rule in rules}) == 32
    for rule in rules:
        assert len({tile.tobytes() for tile in rule}) == 3
    np.testing.assert_array_equal(adapted.states.state.goal_encoding[:, 1:3], rules[:, 2])


@pytest.mark.slow
def test_it_keeps_the_contract():
    problems = [
        check for check in check_world(make_world([NAME], 3, explore=True)) if check.problem
    ]
    assert problems == []


def test_names_are_xminigrids():
    assert NAME in xminigrid.registered_environments()
    with pytest.raises(UnsupportedEnvironment, match="Unregistered environment"):
        make_world(["XLand-MiniGrid-R3"], 2, explore=False)
    with pytest.raises(UnsupportedEnvironment, match="needs a gridworld's levels"):
        find(NAME)
