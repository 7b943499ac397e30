"""Small arrays in one, and out again."""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from cbet_jax.packing import pack, unpack


class Record(NamedTuple):
    reward: jax.Array
    done: jax.Array
    view: jax.Array
    rest: tuple


def test_a_scan_that_packs_keeps_every_bit():
    draw = jax.random.bits(jax.random.key(0), (4, 3, 2), jnp.uint32)
    reward = jax.lax.bitcast_convert_type(draw[..., 0], jnp.float32).at[0, 0].set(jnp.nan)
    numbers = jnp.arange(4 * 3 * 2).reshape(4, 3, 2) - 9
    view = jnp.ones((4, 3, 7, 7), jnp.uint8)
    keys = jax.random.split(jax.random.key(1), 4)
    halves = [(numbers[..., 0] / 7).astype(kind) for kind in (jnp.bfloat16, jnp.float16)]
    rest = (numbers, keys, view[..., 0, 0], *halves, ())
    record = Record(reward, draw[..., 1] >> 31 == 1, view, rest)
    _, packed = jax.lax.scan(lambda _, one: ((), pack(one, 3)), (), record)
    assert packed.words.shape == (4, 3, 1 + 1 + 2 + 1)
    found = unpack(packed)
    bits = lambda leaf: jax.lax.bitcast_convert_type(leaf, jnp.uint32)  # noqa: E731
    chex.assert_trees_all_equal(bits(found.reward), bits(reward))
    chex.assert_trees_all_equal(found._replace(reward=0), record._replace(reward=0))
