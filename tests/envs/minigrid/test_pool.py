"""The pool of levels: each level is played once, and replays are reported."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.minigrid import make_world
from envs.minigrid.generators import GENERATORS, Generator, sample_levels
from envs.minigrid.level import Level
from envs.minigrid.pool import Pool, make_pool, refill, replayed_shares
from envs.minigrid.pool import take as take_levels
from envs.minigrid.world import gridworld
from tests.support.numbered_levels import numbered

MULTI_ENV = ("MultiRoom-N4-S5", "KeyCorridorS3R3", "BlockedUnlockPickup")
TWO = (GENERATORS["DoorKey-16x16"], GENERATORS["DoorKey-8x8"])
CAPACITY, BATCH = 5, 4
SLOTS = 8  # of a ring: once a level is missing, another batch fits
ALL = jnp.ones(BATCH, bool)
FIRST = jnp.zeros(BATCH, jnp.int32)  # all worlds play the first environment


@partial(jax.jit, static_argnums=0)
def make(generators: tuple[Generator, ...]) -> Pool:
    return make_pool(jax.random.key(0), generators, CAPACITY, BATCH)


@partial(jax.jit, static_argnums=1)
def fill(pool: Pool, generators: tuple[Generator, ...]) -> Pool:
    return refill(pool, jax.random.key(1), generators, BATCH)


take = jax.jit(take_levels)


def prints(levels: Level) -> list[bytes]:
    """Return the cells of each level as bytes, to compare levels."""
    return [np.asarray(cells).tobytes() for cells in levels.cells]


def test_every_level_is_taken_once_by_the_world_that_plays_its_environment():
    pool = make(TWO)
    seen = []
    for _ in range(SLOTS // 2):
        pool, levels = take(pool, jnp.array([0, 1, 0, 1]), ALL)
        assert levels.max_steps.tolist() == [2560, 640, 2560, 640]
        seen += prints(levels)
    assert len(set(seen)) == 2 * SLOTS
    assert pool.replayed.tolist() == [0, 0]
    assert pool.taken.tolist() == [SLOTS, SLOTS]


def test_topping_up_leaves_the_levels_that_wait_and_never_overfills():
    pool = make(TWO)
    before = set(prints(jax.tree.map(lambda leaf: leaf[0], pool.levels)))
    assert fill(pool, TWO).made.tolist() == [SLOTS, SLOTS]  # no room
    pool, taken = take(pool, FIRST, ALL)
    pool = fill(pool, TWO)
    after = set(prints(jax.tree.map(lambda leaf: leaf[0], pool.levels)))
    assert pool.made.tolist() == [SLOTS + BATCH, SLOTS]
    assert after & before == before - set(prints(taken))
    assert len(after) == SLOTS


def test_levels_are_played_in_the_order_in_which_they_were_made():
    one = (numbered(every=1),)
    pool, seen = make(one), []
    for wanted in ([1, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 1], [1, 0, 0, 0]) * 3:
        pool, levels = take(pool, FIRST, jnp.array(wanted, bool))
        seen += levels.seed[np.array(wanted, bool)].tolist()
        pool = fill(pool, one)
    assert seen == list(range(27))
    assert replayed_shares(pool)[0] == 0


def test_a_ring_that_ran_dry_counts_replays_of_its_environment_and_recovers():
    two = numbered(every=1), numbered(every=1)
    pool = make(two)
    for expected in ([0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3]):
        pool, levels = take(pool, FIRST, ALL)
        assert levels.seed.tolist() == expected
    assert pool.replayed.tolist() == [12, 0]
    of_all, of_each = replayed_shares(pool)
    assert of_each.tolist() == pytest.approx([12 / 20, 0])
    assert of_all == pytest.approx(12 / 20)
    pool, levels = take(fill(pool, two), FIRST, ALL)
    assert levels.seed.tolist() == [8, 9, 10, 11]
    assert pool.replayed.tolist() == [12, 0]


def test_a_refill_does_a_bounded_amount_of_work_and_goes_on_with_the_drafts():
    one = (numbered(every=5, ready_at_once=2),)
    pool = make(one)
    assert pool.made >= CAPACITY
    calls = int(pool.drafts[0].calls)
    assert int(fill(pool, one).drafts[0].calls) == calls == 15  # a full pool asks for nothing
    pool, _ = take(pool, FIRST, ALL)
    for refills in range(1, 6):
        pool = fill(pool, one)
        assert int(pool.drafts[0].calls) == calls + refills * SLOTS // BATCH
    assert pool.made.tolist() == [10]  # though no refill had the five calls that two levels take
    pool, levels = take(pool, FIRST, ALL)
    assert levels.seed.tolist() == [4, 5, 6, 7]


@pytest.mark.slow
def test_a_generator_that_never_finishes_yields_no_level_and_is_reported():
    never, always = numbered(every=0), numbered(every=1)
    _, valid = sample_levels(never, jax.random.key(0), 2)
    assert not valid.any()
    world = gridworld([always, never], num_worlds=4, explore=True)
    worlds, _ = jax.jit(world.init)(jax.random.key(0))
    step, refresh = jax.jit(world.step), jax.jit(world.refresh)
    environments = []
    for _ in range(12):
        worlds, seen = step(refresh(worlds), jnp.full(4, 2))
        assert not seen.success.any()
        environments.append(int(seen.environment[0]))
    assert environments == [0] * 5 + [1] + [0] * 5 + [1]  # leaves the walled cell after a step
    report = world.report(worlds)
    assert report["levels_replayed/every 0"] == 1
    assert report["levels_replayed/every 1"] == 0
    assert report["levels_replayed"] == pytest.approx(2 / 5)  # 3 levels, 2 cells
    assert worlds.pool.made[1] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "rollouts", "levels", "replayed"),
    [
        (("MultiRoom-N4-S5",), 8, 88, 0),  # a world needs a fresh level every 80 steps
        (("LavaGapS5",), 4, 41, 0),  # it dies long before the time limit
        (MULTI_ENV, 30, 17, 0.01),
    ],
)
def test_a_random_policy_replays_few_levels_or_none(names, rollouts, levels, replayed):
    """Play at random as in pre-training: the pool is refreshed before every 100 steps."""
    world = make_world(names, 8, explore=True)

    @jax.jit
    def rollout(worlds, key):
        actions = jax.random.randint(key, (100, 8), 0, world.num_actions)
        return jax.lax.scan(
            lambda w, a: (world.step(w, a)[0], None), world.refresh(worlds), actions
        )[0]

    worlds, _ = jax.jit(world.init)(jax.random.key(0))
    for key in jax.random.split(jax.random.key(1), rollouts):
        worlds = rollout(worlds, key)
    assert worlds.pool.taken.min() >= levels
    assert max(world.report(worlds).values()) <= replayed


def test_an_evaluation_has_one_level_for_each_world():
    world = make_world(("DoorKey-8x8",), 9, explore=False, levels_per_world=1)
    worlds, _ = jax.jit(world.init)(jax.random.key(0))
    assert worlds.pool.taken.tolist() == [9]
    assert worlds.pool.levels.task.shape == (1, 9 + 3)
    assert world.report(worlds)["levels_replayed"] == 0
    assert len(set(prints(worlds.states.level))) == 9
