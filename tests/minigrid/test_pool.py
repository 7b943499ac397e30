"""The pool of levels: each is played once, and a ring that runs dry says so."""

import jax
import jax.numpy as jnp
import numpy as np

from envs.minigrid.generators import GENERATORS
from envs.minigrid.level import MARGIN
from envs.minigrid.pool import canvas, make_pool, take, top_up
from envs.minigrid.world import gridworld

TWO = (GENERATORS["KeyCorridorS3R3"], GENERATORS["BlockedUnlockPickup"])
CAPACITY = 8
ALL = jnp.ones(4, bool)


def _prints(levels) -> list[bytes]:
    """What tells one level from another."""
    return [np.asarray(cells).tobytes() for cells in levels.cells]


def test_every_level_is_taken_once_by_the_world_that_plays_its_environment():
    pool = make_pool(jax.random.key(0), TWO, CAPACITY)
    environment = jnp.array([0, 1, 0, 1])
    seen = []
    for _ in range(CAPACITY // 2):
        pool, levels = take(pool, environment, ALL)
        assert levels.max_steps.tolist() == [270, 576, 270, 576]
        seen += _prints(levels)
    assert len(set(seen)) == 2 * CAPACITY
    assert int(pool.replayed) == 0
    assert pool.taken.tolist() == [CAPACITY, CAPACITY]


def test_a_world_that_wants_nothing_takes_nothing():
    pool = make_pool(jax.random.key(0), TWO, CAPACITY)
    pool, _ = take(pool, jnp.zeros(4, jnp.int32), jnp.array([True, False, False, True]))
    assert pool.taken.tolist() == [2, 0]


def test_a_ring_that_ran_dry_counts_replays_and_recovers():
    pool = make_pool(jax.random.key(0), TWO[:1], CAPACITY)
    for _ in range(3):  # 12 of 8 levels
        pool, _ = take(pool, jnp.zeros(4, jnp.int32), ALL)
    assert int(pool.replayed) == 4
    pool = top_up(pool, jax.random.key(1), TWO[:1], count=4)
    pool, _ = take(pool, jnp.zeros(4, jnp.int32), ALL)
    assert int(pool.replayed) == 4


def test_topping_up_adds_fresh_levels_and_leaves_those_that_wait():
    pool = make_pool(jax.random.key(0), TWO[:1], CAPACITY)
    before = set(_prints(jax.tree.map(lambda leaf: leaf[0], pool.levels)))
    full = top_up(pool, jax.random.key(1), TWO[:1], count=4)
    assert full.made.tolist() == [CAPACITY]  # no room
    pool, taken = take(pool, jnp.zeros(4, jnp.int32), ALL)
    pool = top_up(pool, jax.random.key(1), TWO[:1], count=4)
    after = set(_prints(jax.tree.map(lambda leaf: leaf[0], pool.levels)))
    assert pool.made.tolist() == [CAPACITY + 4]
    assert after & before == before - set(_prints(taken))
    assert len(after) == CAPACITY


def test_a_single_environment_of_short_episodes_never_replays_a_level():
    """MultiRoom-N4-S5 alone: every world needs a fresh level every 80 steps."""
    world = gridworld([GENERATORS["MultiRoom-N4-S5"]], num_worlds=8, explore=True)

    @jax.jit
    def play(worlds):
        worlds = world.refresh(worlds)
        action = jnp.zeros(8, jnp.int32)
        return jax.lax.scan(lambda w, _: (world.step(w, action)[0], None), worlds, length=100)[0]

    worlds, _ = world.init(jax.random.key(0))
    for _ in range(8):
        worlds = play(worlds)
    assert int(worlds.pool.taken[0]) == 8 * 11
    assert float(world.report(worlds)["levels_replayed"]) == 0


def test_levels_of_all_sizes_share_the_largest_canvas():
    pool = make_pool(jax.random.key(0), TWO, CAPACITY)
    assert canvas(TWO) == (7 + 2 * MARGIN, 11 + 2 * MARGIN)
    assert pool.levels.cells.shape == (2, CAPACITY, *canvas(TWO))
