"""The page on worlds of one's own: its files are run as they stand there."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.minigrid import make_world
from envs.minigrid.generators import find, sample_levels
from envs.minigrid.level import PICK_UP, REACH_GOAL
from experiments.common.cli import load_world
from tests.support.own_world import forget

PAGE = Path(__file__).parent.parent.parent / "envs" / "README.md"
LONGEST = 32  # lines of an example


@pytest.fixture
def files(tmp_path):
    """The page's files, by name."""
    for name, code in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE.read_text(), re.DOTALL):
        (tmp_path / name).write_text(code)
        assert code.count("\n") <= LONGEST, name
    yield tmp_path
    forget()


@pytest.mark.parametrize(
    ("named", "task", "max_steps"),
    [
        ("maps.py:make", REACH_GOAL, 120),
        ("maps.py:fetch", PICK_UP, 4 * 5 * 4),
        ("random_room.py:make", REACH_GOAL, 100),
    ],
)
def test_gridworlds_of_the_page_have_levels(files, named, task, max_steps):
    generator = find(load_world(f"{files}/{named}"))
    assert (generator.task, generator.max_steps) == (task, max_steps)
    levels, ready = jax.jit(lambda key: sample_levels(generator, key, 8))(jax.random.key(0))
    assert ready.all()
    assert generator.deadly == (named == "maps.py:fetch")
    assert (len(np.unique(np.asarray(levels.cells), axis=0)) > 1) == (named != "maps.py:fetch")


def test_the_walk_of_the_page_is_played(files):
    world = make_world([load_world(f"{files}/walk.py:make")], 3, explore=True)
    assert (world.view_shape, world.max_steps) == ((1, 1, 3), 50)
    state, _ = world.init(jax.random.key(0))
    _, steps = jax.lax.scan(world.step, state, jnp.zeros((50, 3), jnp.int32))
    assert np.asarray(steps.truncated[-1]).all()  # it went left
    assert not np.asarray(steps.truncated[:-1]).any()
