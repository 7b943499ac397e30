"""Worlds of one's own: what a function may return, and how they are found."""

import jax
import jax.numpy as jnp
import pytest

import envs.minigrid
from envs.errors import UnknownEnvironment, UnsupportedEnvironment
from envs.minigrid.generators import find, own_worlds
from envs.minigrid.generators.generator import empty_room, make_generator
from envs.minigrid.level import REACH_GOAL, make_level
from tests.support.own_world import forget
from tests.support.worlds import corridor

ROOM = "WGWGWGWGWG\nWG>>  GGWG\nWGWGWGWGWG"


@pytest.fixture(autouse=True)
def _forgotten():
    yield
    forget()


def generator(*, size=4, width=4, max_steps=9, task=REACH_GOAL, ready=True):
    def sample_level(key):
        del key
        level = make_level(
            empty_room(size, size), jnp.array([1, 1]), 0, task=REACH_GOAL, max_steps=9
        )
        return level, jnp.array(ready)

    return make_generator("theirs", width, 4, max_steps, task, sample_level)


def with_direction(direction):
    usual = generator()

    def advance(drafts, key, count):
        drafts, levels, ready = usual.advance(drafts, key, count)
        shape = count, *direction.shape
        return drafts, levels._replace(agent_direction=jnp.broadcast_to(direction, shape)), ready

    return usual._replace(advance=advance)


@pytest.mark.parametrize(
    "make", [lambda: ROOM, lambda: [ROOM, ROOM], generator, lambda size=4: generator(size=size)]
)
def test_gridworlds_are_found_by_their_names(make):
    own_worlds.add("my.py:make@12345678", make)
    assert find("my.py:make@12345678").name == "my.py:make@12345678"
    names = ["Unlock", "my.py:make@12345678"]
    world = envs.minigrid.make_world(names, 2, explore=True)
    assert world.environments == tuple(names)
    _, step = jax.eval_shape(world.init, jax.random.key(0))
    assert step.view.shape == (2, 7, 7, 3)


def test_what_has_a_digest_is_made_once():
    made = []
    for _ in range(2):
        own_worlds.add("my.py:make@12345678", lambda: made.append("it") or ROOM)
    assert made == ["it"]


def test_a_world_that_is_changed_takes_the_place_of_the_one_before():
    """As in a notebook."""
    for make, width in ((generator, 4), (corridor, None), (lambda: generator(width=5), 5)):
        own_worlds.add("maps:make", make)
        assert own_worlds.is_whole_world("maps:make") == (width is None)
        assert width is None or find("maps:make").width == width
    with pytest.raises(own_worlds.OwnWorldError, match="needs a colon"):
        own_worlds.add("maps", generator)


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: None, "a map, several maps or a Generator, not NoneType"),
        (list, "not an empty list"),
        (lambda: "WG", "one agent"),
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda a, b: None, "nothing, or the number of worlds"),
        (lambda: generator(size=5), "5 x 5 cells, more than its width and height, 4 x 4"),
        (lambda: generator(width=300), "3 to 255 cells"),
        (lambda: generator(max_steps=0), "max_steps must be a whole number of at least 1"),
        (lambda: generator()._replace(max_steps=1e3), "max_steps must be a whole number"),
        (lambda: generator()._replace(width=4.0), "its levels fail: Type"),
        (lambda: generator()._replace(height="4"), "its levels fail: Type"),
        (lambda: with_direction(jnp.zeros(1, int)), "its levels fail: "),
        (lambda: generator(task=4), r"its task must be one of 0 \(.*\), .*, not 4"),
        (lambda: generator(ready=1), "one bool|its levels fail"),
        (lambda: generator(size="4"), "its levels fail: Type"),
    ],
)
def test_what_is_no_world_is_refused_in_one_line(make, line):
    with pytest.raises(own_worlds.OwnWorldError, match=line) as refused:
        own_worlds.add("my.py:make@12345678", make)
    assert "\n" not in str(refused.value)
    with pytest.raises(UnknownEnvironment, match="if you trust it, name it on the command line"):
        find("my.py:make@12345678")


def test_a_world_with_rules_of_its_own_is_played_alone():
    own_worlds.add("my.py:make@12345678", corridor)
    assert own_worlds.is_whole_world("my.py:make@12345678")
    world = envs.minigrid.make_world(["my.py:make@12345678"], 3, explore=True)
    assert (world.num_worlds, world.num_actions) == (3, 3)
    with pytest.raises(UnsupportedEnvironment, match="played alone"):
        envs.minigrid.make_world(["my.py:make@12345678", "Unlock"], 3, explore=True)
    with pytest.raises(UnsupportedEnvironment, match="needs a gridworld's levels"):
        find("my.py:make@12345678")


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda n: None, "must return a World, not NoneType"),
        (lambda n: n / 0, "ZeroDivisionError"),
        (lambda n: corridor(4), "4 worlds, not the 3 asked for"),
    ],
)
def test_a_function_that_makes_no_world_is_told_when_it_is_played(make, line):
    own_worlds.add("my.py:make@12345678", make)
    with pytest.raises(UnsupportedEnvironment, match=line):
        envs.minigrid.make_world(["my.py:make@12345678"], 3, explore=True)
