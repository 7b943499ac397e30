"""Properties of every environment, whatever its family."""

import inspect

import chex
import jax
import numpy as np
import pytest

import envs.minigrid
from envs.minigrid import cells as c
from envs.minigrid import rules
from envs.minigrid.generators import GENERATORS, find, sample_levels
from envs.minigrid.level import MARGIN, OPEN_DOOR, PICK_UP, REACH_GOAL
from envs.minigrid.world import gridworld, look
from tests.support.families import others_slow
from tests.support.play import BATCH, levels_of, play, sampling_program

STEPS = 120


@pytest.fixture(scope="module", params=others_slow())
def drawn(request):
    """A name, and the levels sampled with one key."""
    return request.param, jax.device_get(levels_of(request.param, jax.random.key(3), BATCH))


def test_the_same_key_draws_the_same_levels_and_another_draws_others(drawn):
    name, levels = drawn
    again, others = (levels_of(name, jax.random.key(seed), BATCH) for seed in (3, 4))
    same = jax.tree.map(lambda a, b: bool((a == b).all()), levels, jax.device_get(again))
    assert jax.tree.all(same)
    assert not (levels.cells == np.asarray(others.cells)).all()
    assert sampling_program(name)._cache_size() == 1  # one trace for all keys


def test_a_level_is_well_formed(drawn):
    name, levels = drawn
    generator = GENERATORS[name]
    height, width = generator.height, generator.width
    assert levels.cells.shape == (BATCH, height + 2 * MARGIN, width + 2 * MARGIN)
    assert (levels.size == (width, height)).all()
    assert (levels.task == generator.task).all()
    assert (levels.max_steps == generator.max_steps).all()
    assert (levels.cells >> 3 < c.NUM_KINDS).all()
    assert (levels.cells & 7 < len(c.COLORS)).all()
    x, y = levels.agent_position.T + MARGIN
    assert (levels.cells[np.arange(BATCH), y, x] == c.EMPTY).all()
    assert (_targets(levels, generator.task) == 1).all()


def _targets(levels, task: int) -> np.ndarray:
    """Count the objects that fulfil the task of each level."""
    if task == OPEN_DOOR:
        x, y = (levels.target & 255) + MARGIN, (levels.target >> 8) + MARGIN
        return levels.cells[np.arange(BATCH), y, x] >> 3 == c.KIND_LOCKED
    wanted = {REACH_GOAL: c.GOAL, PICK_UP: levels.target[:, None, None]}[task]
    return (levels.cells == wanted).sum((1, 2))


def test_playing_keeps_the_agent_inside_and_the_walls_standing(drawn):
    name, levels = drawn
    steps = min(STEPS, GENERATORS[name].max_steps)
    random = np.full((steps, BATCH), -1, np.int32)
    record = play(levels, jax.random.key(5), random)
    cells = record.states.level.cells
    x, y = np.moveaxis(record.states.level.agent_position, -1, 0) + MARGIN
    under = np.take_along_axis(
        cells.reshape(*cells.shape[:2], -1), (y * cells.shape[-1] + x)[..., None], axis=-1
    )
    ground = (c.KIND_EMPTY, c.KIND_OPEN, c.KIND_GOAL, c.KIND_LAVA)
    assert np.isin(under >> 3, ground).all()
    wall = cells >> 3 == c.KIND_WALL
    assert (wall == wall[:1]).all()
    assert (record.view[..., 0] <= 10).all()
    assert (record.states.step_count == np.arange(steps)[:, None]).all()
    assert ((record.outcomes.reward >= 0) & (record.outcomes.reward <= 1)).all()


def test_final_views_are_those_that_actions_led_to():
    """Lava, the goal and the time limit end episodes."""
    world = gridworld([GENERATORS["LavaGapS5"]], BATCH, explore=False)

    @jax.jit
    def play(key):
        def step(state, action):
            played, _ = jax.vmap(rules.step)(state.states, action)
            after, seen = world.step(state, action)
            return after, (look(played).view, seen, world.step_with_final(state, action)[1])

        actions = jax.random.randint(key, (STEPS, BATCH), 0, 7)
        actions = actions.at[:, 0].set(rules.ACTIONS.index("left"))
        return jax.lax.scan(step, world.init(key)[0], actions)[1]

    expected, without, seen = jax.device_get(play(jax.random.key(0)))
    assert seen.terminated.any()
    assert seen.truncated.any()
    np.testing.assert_array_equal(seen.final_view, expected)
    assert (seen.final_view != seen.view).any()
    chex.assert_trees_all_equal(seen._replace(final_view=None), without)


OTHER_SIZES = [  # of each family, with (width, height)
    ("DoorKey-10x10", (10, 10)),
    ("KeyCorridorS4R2", (10, 7)),
    ("MultiRoom-N3-S6", (25, 25)),
    ("MultiRoom-N3", (25, 25)),
    ("MultiRoomNoisyTV-N3-S5", (25, 25)),
    ("LavaCrossingS7N4", (7, 7)),
    ("SimpleCrossingS13N2", (13, 13)),
    ("LavaGapS12", (12, 12)),
]


@pytest.mark.parametrize(("name", "size"), OTHER_SIZES)
def test_any_size_of_a_family_can_be_named(name, size):
    generator = find(name)
    assert (generator.width, generator.height) == size
    levels, _ = jax.eval_shape(lambda key: sample_levels(generator, key, 4), jax.random.key(0))
    assert levels.cells.shape == (4, size[1] + 2 * MARGIN, size[0] + 2 * MARGIN)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, _ in OTHER_SIZES])
def test_any_size_of_a_family_can_be_sampled(name):
    _, ok = sample_levels(find(name), jax.random.key(0), 4)
    assert ok.all()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("DoorKey-4x4", "at least 5, not 4"),
        ("DoorKey-8x9", "square"),
        ("KeyCorridorS2R3", "at least 3"),
        ("KeyCorridorS6R60", "at most 255"),
        ("LavaCrossingS8N1", "odd"),
        ("LavaCrossingS9N7", "1 to 6 rivers, not 7"),
        ("LavaGapS4", "at least 5"),
        ("MultiRoom-N1-S4", "at least two rooms"),
        ("MultiRoom-N4-S3", "rooms of size 4"),
        ("MultiRoom-N6-S26", "no room of size 26 fits its 25x25 grid"),
        ("MultiRoomNoisyTV-N50-S4", "at most 49 rooms fit"),
        ("KeyCoridorS3R3", "did you mean KeyCorridorS3R3"),
        ("doorkey-8x8", "did you mean DoorKey-8x8"),
    ],
)
def test_a_size_that_cannot_be_is_refused_in_one_line(name, says):
    with pytest.raises(envs.minigrid.UnknownEnvironment, match=says) as error:
        envs.minigrid.make_world([name], 4, explore=True)
    assert "\n" not in str(error.value)
    assert str(error.value).count(name) == 1


def test_a_list_where_one_name_is_needed_is_refused_in_a_line():
    unchecked = inspect.unwrap(find)  # only tests check the types
    with pytest.raises(envs.minigrid.UnknownEnvironment, match="the name of one environment"):
        unchecked(["Unlock"])


@pytest.mark.parametrize(
    ("names", "number", "line"),
    [
        ([], 2, "names must be a list"),
        ([3], 2, r"a list of environments, not \[3\]"),
        ("Unlock", 2, "a list of environments, not 'Unlock'"),
        (["Unlock"], 0, "a whole number, at least 1, not 0"),
        (["Unlock"], 2.5, "at least 1, not 2.5"),
    ],
)
def test_worlds_without_meaning_are_refused_in_a_line(names, number, line):
    unchecked = inspect.unwrap(envs.minigrid.make_world)  # only tests check the types
    with pytest.raises(ValueError, match=line):
        unchecked(names, number, explore=True)


@pytest.mark.parametrize("number", [0, -5, 1.5])
def test_a_pool_without_room_is_refused_in_a_line(number):
    unchecked = inspect.unwrap(envs.minigrid.make_world)  # only tests check the types
    with pytest.raises(ValueError, match=f"levels_per_world must be at least 1, not {number}"):
        unchecked(["Unlock"], 2, explore=True, levels_per_world=number)
