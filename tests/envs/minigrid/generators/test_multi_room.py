"""Sampling MultiRoom's levels: in batches, in small steps, with bounded work."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from envs.errors import ImpossibleEnvironment
from envs.minigrid import cells as c
from envs.minigrid.generators import GENERATORS, find, room_chains, sample_levels
from envs.minigrid.generators.room_chains import randint_below
from envs.minigrid.level import DIRECTIONS, unpack_position
from tests.envs.minigrid.solving.planner import plan
from tests.support.families import slow
from tests.support.play import exports, levels_of


def test_drafts_continue_where_the_last_call_left_them(monkeypatch):
    """With a bound of 4 rounds per call, no chain of 4 rooms can be ready after one call."""
    monkeypatch.setattr(room_chains, "ROUNDS_PER_PASS", 4)
    monkeypatch.setattr(room_chains, "MAX_PASSES", 1)
    generator = GENERATORS["MultiRoom-N4-S5"]
    advance = jax.jit(generator.advance, static_argnums=2)
    drafts, made = generator.begin(2), []
    for key in jax.random.split(jax.random.key(0), 20):
        drafts, _, ready = advance(drafts, key, 2)
        made.append(int(ready.sum()))
    assert made[:6] == [0] * 6  # the slowest chain takes 25 rounds, and all wait that long
    assert sum(made) >= 2 * 10


def test_a_call_ends_though_no_chain_is_ready():
    """49 rooms of 4 x 4 fit the grid, but the sampler never finds such a chain."""

    @jax.jit
    def call(key):
        chains = room_chains.grow(room_chains.empty_chains(49, 8), key, count=1, max_room_size=4)
        return chains.age, room_chains.hand_out(chains, 2)[-1]

    age, ready = call(jax.random.key(0))
    assert age.max() <= room_chains.ROUNDS_PER_PASS * room_chains.MAX_PASSES
    assert not ready.any()


@pytest.mark.parametrize("name", [slow("MultiRoom-N12-S10"), "MultiRoomNoisyTV-N7-S4"])
def test_a_level_that_is_handed_out_is_complete(name):
    levels, valid = jax.jit(lambda key: sample_levels(GENERATORS[name], key, 8))(jax.random.key(0))
    assert valid.all()
    rooms = int(levels.max_steps[0]) // 20
    for level in exports(levels):
        kinds = level.grid[..., 0]
        assert (kinds == c.TYPE_DOOR).sum() == rooms - 1
        assert (kinds == c.TYPES.index("goal")).sum() == 1
        assert (kinds == c.TYPES.index("ball")).sum() == ("Noisy" in name)
        assert kinds[level.agent_pos] == c.TYPES.index("empty")
        assert plan(level) is not None
    assert (levels.agent_direction < len(DIRECTIONS)).all()


def test_all_numbers_below_a_limit_are_equally_likely():
    words = jax.random.bits(jax.random.key(0), (70_000,))
    first, rest = randint_below(7, words)
    second, _ = randint_below(jnp.full(70_000, 5), rest)
    pairs = np.bincount(np.asarray(first) * 5 + np.asarray(second))
    assert len(pairs) == 35
    assert chisquare(pairs).pvalue > 0.01
    extremes = jnp.array([0, 2**32 // 7, 2**32 // 7 + 1, 2**32 - 1], jnp.uint32)
    assert randint_below(7, extremes)[0].tolist() == [0, 0, 1, 6]


def test_hopeless_sizes_are_refused_after_a_try_and_hard_ones_are_not():
    with pytest.raises(ImpossibleEnvironment, match=r"20 rooms .* in 2,097,152 tries") as caught:
        find("MultiRoom-N20-S10")
    assert "\n" not in str(caught.value)
    assert find("MultiRoom-N20-S4").max_steps == 400


def test_the_noisy_ball_and_the_agent_are_anywhere_in_the_first_room_apart():
    """Of four cells: their places are drawn one after the other, and so are the ball's colours."""
    levels = levels_of("MultiRoomNoisyTV-N7-S4", jax.random.key(0), 100)
    x, y = unpack_position(levels.noisy_ball)
    away = np.stack([x, y], axis=1) - levels.agent_position
    assert {*map(tuple, away.tolist())} == {*itertools.product((-1, 0, 1), repeat=2)} - {(0, 0)}
    assert len(np.unique(levels.seed)) == 100
