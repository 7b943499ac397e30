"""What policies see, against MiniGrid's wrappers, in random play."""

import inspect

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minigrid.wrappers import (
    FullyObsWrapper,
    RGBImgObsWrapper,
    RGBImgPartialObsWrapper,
    ViewSizeWrapper,
)

from envs.errors import UnsupportedEnvironment
from envs.minigrid import cells as c
from envs.minigrid.generators import find
from envs.minigrid.level import NO_TASK, UP, enlarge, make_level
from envs.minigrid.observations import observer_of
from envs.minigrid.rules import State, start
from envs.minigrid.views import look_around_batch
from tests.support.families import others_slow
from tests.support.minigrid_reference import make, rebuild
from tests.support.play import exports_of, levels_of, play

DEFAULT = ("BlockedUnlockPickup", "LavaCrossingS9N2")  # together they have every kind of thing
WORLDS = others_slow((*DEFAULT, "KeyCorridorS3R3", "MultiRoom-N4-S5"), DEFAULT)
STEPS = 40

# Options of ours; MiniGrid's wrapper, its options, and those of its environment.
VIEWS = {
    "full": ({"view": "full"}, FullyObsWrapper, {}, {}),
    "rgb": ({"view": "rgb"}, RGBImgPartialObsWrapper, {}, {}),
    "full-rgb": ({"view": "full-rgb"}, RGBImgObsWrapper, {}, {}),
    "3": ({"view_size": 3}, ViewSizeWrapper, {"agent_view_size": 3}, {}),
    "9": ({"view_size": 9}, ViewSizeWrapper, {"agent_view_size": 9}, {}),
    "17": ({"view_size": 17}, ViewSizeWrapper, {"agent_view_size": 17}, {}),
    "through walls": (
        {"see_through_walls": True}, ViewSizeWrapper, {}, {"see_through_walls": True},
    ),
    "rgb of 5": (
        {"view": "rgb", "view_size": 5}, RGBImgPartialObsWrapper, {}, {"agent_view_size": 5},
    ),
    "full-rgb of 9, through walls": (
        {"view": "full-rgb", "view_size": 9, "see_through_walls": True}, RGBImgObsWrapper, {},
        {"agent_view_size": 9, "see_through_walls": True},
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=WORLDS)
def played(request) -> tuple[str, list[State]]:
    """Return the states of random play in two levels of an environment."""
    levels = levels_of(request.param, jax.random.key(3), 2)
    plans = np.full((STEPS, 2), -1, np.int32)
    record = play(levels, jax.random.key(4), plans)
    return request.param, jax.tree.map(
        lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), record.states
    )


@pytest.mark.parametrize(("options", "wrapper", "wrapped", "made"), VIEWS.values(), ids=VIEWS)
def test_policies_see_what_minigrids_wrappers_show(played, options, wrapper, wrapped, made):
    name, states = played
    observer = observer_of([find(name)], **options)
    seen = np.asarray(jax.jit(observer.see)(states))
    assert seen.shape[1:] == observer.shape
    env = make(name)
    for option, value in made.items():
        setattr(env, option, value)
    if "agent_view_size" in made:  # which says the shape to the wrapper
        size = made["agent_view_size"]
        env.observation_space["image"] = gymnasium.spaces.Box(0, 255, (size, size, 3), np.uint8)
    shown = wrapper(env, **wrapped)
    assert observer.shape == shown.observation_space["image"].shape
    for ours, exported in zip(seen, exports_of(states), strict=True):
        rebuild(exported, env)
        theirs = shown.observation(env.gen_obs())["image"]
        np.testing.assert_array_equal(ours, theirs)


def test_smaller_grids_have_walls_around_them_and_larger_ones_are_refused():
    small, large = find("KeyCorridorS3R3"), find("MultiRoom-N4-S5")
    observer = observer_of([small, large], view="full")
    assert observer.shape == (25, 25, 3)
    levels = levels_of(small.name, jax.random.key(0), 1)
    level = jax.tree.map(lambda leaf: leaf[0], levels)
    state = jax.tree.map(lambda leaf: leaf[None], start(enlarge(level, 35, 35)))
    alone = jax.jit(observer_of([small], view="full").see)(state)
    (shown,) = np.asarray(jax.jit(observer.see)(state))
    np.testing.assert_array_equal(shown[: small.width, : small.height], alone[0])
    assert (shown[small.width :] == [2, 5, 0]).all()  # grey walls
    with pytest.raises(UnsupportedEnvironment, match="25 x 25 cells is larger than the 7 x 7"):
        observer_of([large], view="full", grid=(7, 7))


@pytest.mark.parametrize("view", ["full", "full-rgb"])
def test_a_full_view_of_a_larger_grid_is_the_same_where_levels_are_stored_small(view):
    observer = observer_of([find("Unlock")], view=view, grid=(25, 25))
    levels = levels_of("Unlock", jax.random.key(0), 1)
    level = jax.tree.map(lambda leaf: leaf[0], levels)
    stored = [start(level), start(enlarge(level, 35, 35))]
    see = jax.jit(observer.see)
    small, large = (see(jax.tree.map(lambda leaf: leaf[None], one)) for one in stored)
    assert small.shape[1:] == observer.shape
    np.testing.assert_array_equal(small, large)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"view": "pixels"}, "view must be one of egocentric, full, rgb, full-rgb"),
        ({"view_size": 8}, "view_size must be odd"),
        ({"view_size": 33}, r"in 3\.\.31"),
        ({"view_size": "9"}, "view_size must be odd and in 3..31, not '9'"),
        ({"view": "full", "view_size": 9}, "a full view has no view_size"),
    ],
)
def test_views_without_meaning_are_refused_in_a_line(options, line):
    unchecked = inspect.unwrap(observer_of)  # only tests check the types
    with pytest.raises(ValueError, match=line):
        unchecked([find("Unlock")], **options)


@pytest.mark.parametrize("size", [7, 19])
def test_sight_that_comes_through_a_gap_at_one_side_crosses_the_whole_view(size):
    """The agent looks up. A wall with a gap at its left end is between it and an empty row."""
    middle, grid = size // 2 + 1, np.full((5, size + 2), c.WALL, np.uint8)
    grid[1, 1:-1] = grid[2, 1] = grid[3, 1 : middle + 1] = c.EMPTY
    agent = jnp.array([middle, 3])
    level = make_level(jnp.asarray(grid), agent, UP, task=NO_TASK, max_steps=1)
    states = jax.tree.map(lambda leaf: leaf[None], start(level))
    seen = jax.jit(look_around_batch, static_argnums=1)(states, size)
    assert (np.asarray(seen)[UP, :, -3, 0] == c.EMPTY).all()
